"""`mockbroker serve --data-dir`: what was acknowledged is there again after a kill."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker.client import Client
from tests.support.librdkafka import Delivery, flush, open_consumer, poll, settings, until, values
from tests.support.serving import Served, free_block, serve_and_fail
from tests.support.waiting import wait_until

DATA = "cluster.log"


class Lives:
    """A cluster of three brokers on fixed ports that is killed and started again."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.port = free_block(3)
        self.flags = ("--data-dir", str(directory), "--port", str(self.port), *flags)
        self.served = Served(*self.flags).__enter__()

    @property
    def bootstrap(self) -> str:
        return self.served.bootstrap_servers

    def kill(self) -> None:
        """SIGKILL: the process has no time for anything."""
        self.served.__exit__(None, None, None)

    def start(self) -> None:
        self.served = Served(*self.flags).__enter__()

    def __enter__(self) -> Lives:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def patient(bootstrap: str, **config: object) -> dict[str, object]:
    """Settings of a client that tries again soon and for long."""
    fast = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": 20}
    return settings(bootstrap, **fast, **config)


def poll_until(producer: Producer, condition: Callable[[], bool]) -> None:
    def holds() -> bool:
        producer.poll(0.01)
        return condition()

    wait_until(holds)


@pytest.mark.parametrize("flags", [(), ("--sync",)], ids=["written", "synced"])
def test_a_producer_goes_on_over_kills_and_every_record_is_there_once(tmp_path, flags):
    with Lives(tmp_path, "--topic", "t:2:3", *flags) as lives:
        producer = Producer(
            patient(lives.bootstrap, enable_idempotence=True, linger_ms=0, acks="all")
        )
        delivery = Delivery()
        sent = 0
        for _ in range(3):
            target = sent + 150
            while len(delivery.messages) < target:
                if sent < target + 50:
                    producer.produce("t", b"%d" % sent, partition=sent % 2, on_delivery=delivery)
                    sent += 1
                producer.poll(0.001)
            lives.kill()  # some are on their way
            lives.start()
        flush(producer)
        assert not delivery.errors
        with open_consumer(lives.bootstrap) as consumer:
            consumer.assign([TopicPartition("t", index, 0) for index in (0, 1)])
            found = poll(consumer, sent)
    for index in (0, 1):
        got = [int(message.value()) for message in found if message.partition() == index]
        assert got == list(range(index, sent, 2))


def test_committed_offsets_survive_a_kill_and_a_consumer_reads_on(tmp_path):
    with Lives(tmp_path, "--topic", "t") as lives:
        producer = Producer(patient(lives.bootstrap))
        delivery = Delivery()
        for at in range(5):
            producer.produce("t", b"%d" % at, on_delivery=delivery)
        flush(producer)
        config = {"group.id": "g", "auto.offset.reset": "error", "enable.auto.commit": False}
        consumer = Consumer({**patient(lives.bootstrap), **config, "session.timeout.ms": 30000})
        try:
            consumer.assign([TopicPartition("t", 0, 0)])
            assert values(poll(consumer, 3)) == ["0", "1", "2"]
            consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
            lives.kill()
            lives.start()
            assert consumer.committed([TopicPartition("t", 0)], 20)[0].offset == 3
            for at in range(5, 8):
                producer.produce("t", b"%d" % at, on_delivery=delivery)
            found = []
            wanted = ["3", "4", "5", "6", "7"]

            def read_on() -> bool:
                producer.poll(0)
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    found.append(message)
                return values(found) == wanted

            wait_until(read_on)
        finally:
            consumer.close()


def test_transactions_end_as_they_were_decided(tmp_path):
    with Lives(tmp_path, "--topic", "t:2:3") as lives:
        producer = Producer(patient(lives.bootstrap, transactional_id="x"))
        producer.init_transactions(30)

        def write(word: bytes) -> None:
            producer.begin_transaction()
            for partition in (0, 1):
                producer.produce("t", word, partition=partition)

        write(b"committed")
        producer.commit_transaction(30)
        lives.kill()  # its markers may not have been written yet
        lives.start()
        write(b"goes on")
        producer.commit_transaction(30)
        write(b"open")
        flush(producer)
        lives.kill()
        lives.start()
        producer.abort_transaction(30)
        write(b"last")
        producer.commit_transaction(30)
        with open_consumer(lives.bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign([TopicPartition("t", index, 0) for index in (0, 1)])
            found = poll(consumer, 6)
            assert sorted(values(found)) == sorted(["committed", "goes on", "last"] * 2)
            ends = [consumer.get_watermark_offsets(TopicPartition("t", p), 20)[1] for p in (0, 1)]
            # Three records of three transactions with a marker each, and those of the aborted one.
            assert ends == [8, 8]


def test_a_group_of_consumers_goes_on_over_a_kill(tmp_path):
    with Lives(tmp_path, "--topic", "t:4") as lives:
        producer = Producer(patient(lives.bootstrap))
        config = {"group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        consumer = Consumer({**patient(lives.bootstrap), **config})
        try:
            consumer.subscribe(["t"])
            until(lambda: len(consumer.assignment()) == 4, consumer)
            lives.kill()
            lives.start()
            producer.produce("t", b"after", partition=2)
            flush(producer)
            found = []

            def comes() -> bool:
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    found.append(message)
                return bool(found)

            wait_until(comes)
            assert values(found) == ["after"]
        finally:
            consumer.close()


# ---------------------------------------------------------------------------------------- the file


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A data directory with ten records in topic t, each in a frame of its own."""
    with Served("--data-dir", str(tmp_path), "--topic", "t", "--brokers", "1") as served:
        with Client(served.bootstrap_servers) as client:
            for at in range(10):
                client.produce("t", [b"%d" % at])
        served.stop()
    return tmp_path


def test_a_write_that_was_cut_off_is_dropped_with_one_line(stopped):
    path = stopped / DATA
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    with Served("--data-dir", str(stopped)) as served:
        with Client(served.bootstrap_servers) as client:
            assert client.list_offsets("t")[0].offset == 9
        ended = served.stop()
    (line,) = [line for line in ended.stderr.splitlines() if DATA in line]
    assert f"{path}: cut off at byte " in line


def test_damage_is_told_with_its_place_and_nothing_is_started(stopped):
    path = stopped / DATA
    data = bytearray(path.read_bytes())
    at = data.rindex(b"7", 0, len(data))
    data[at] ^= 1
    path.write_bytes(data)
    ended = serve_and_fail("--data-dir", str(stopped), "--port", "0", "--no-admin")
    assert ended.code == 2
    assert ended.stdout == ""
    assert f"{path} is damaged at byte " in ended.stderr
    assert "--recover" in ended.stderr
    assert path.read_bytes() == data


def test_with_recover_all_before_the_damage_is_kept(stopped):
    path = stopped / DATA
    data = bytearray(path.read_bytes())
    (size,) = struct.unpack_from(">I", data, 16)
    assert size
    at = data.rindex(b"7", 0, len(data))
    data[at] ^= 1
    path.write_bytes(data)
    with Served("--data-dir", str(stopped), "--recover") as served:
        with Client(served.bootstrap_servers) as client:
            assert client.list_offsets("t")[0].offset == 7
        ended = served.stop()
    assert f"{path} is damaged at byte " in ended.stderr
    assert (stopped / "cluster.log.damaged").read_bytes() == data
    with Served("--data-dir", str(stopped)) as served, Client(served.bootstrap_servers) as client:
        assert client.list_offsets("t")[0].offset == 7


def test_one_directory_serves_one_process(tmp_path):
    with Served("--data-dir", str(tmp_path)) as served:
        ended = serve_and_fail("--data-dir", str(tmp_path), "--port", "0", "--no-admin")
        assert ended.code == 2
        assert f"{tmp_path} is in use by process {served.process.pid}" in ended.stderr


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--brokers", "2"), "brokers 1,2 are asked for, but stored are 1"),
        (("--kafka-version", "3.9"), "plays Kafka 4.3; this one plays 3.9"),
        (("--load", "elsewhere"), "cannot begin with what another one holds"),
    ],
)
def test_flags_that_do_not_fit_are_refused(stopped, flags, complaint):
    ended = serve_and_fail("--data-dir", str(stopped), *flags, "--port", "0", "--no-admin")
    assert ended.code == 2
    assert complaint in ended.stderr


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--sync",), "--sync is for --data-dir"),
        (("--recover",), "--recover is for --data-dir or --load"),
        (("--load", "/nowhere"), "cannot read /nowhere/cluster.log: No such file"),
    ],
)
def test_flags_that_lack_another_are_refused(flags, complaint):
    ended = serve_and_fail(*flags, "--port", "0", "--no-admin")
    assert ended.code == 2
    assert complaint in ended.stderr


def test_what_is_loaded_is_left_as_it_is(stopped):
    before = (stopped / DATA).read_bytes()
    for _ in range(2):
        with Served("--load", str(stopped)) as served, Client(served.bootstrap_servers) as client:
            assert client.list_offsets("t")[0].offset == 10
            client.produce("t", [b"more"])
    assert (stopped / DATA).read_bytes() == before


def test_configs_given_at_the_start_are_remembered_until_others_are_given(tmp_path):
    flags = ("--data-dir", str(tmp_path), "--brokers", "1")
    for more, partitions in ((("--config", "num.partitions=5"), 5), ((), 5)):
        with Served(*flags, *more) as served, Client(served.bootstrap_servers) as client:
            name = f"auto-{len(more)}"
            wait_until(lambda c=client, n=name: bool(c.metadata([n]).topics[0].partitions))
            assert len(client.metadata([name]).topics[0].partitions) == partitions
