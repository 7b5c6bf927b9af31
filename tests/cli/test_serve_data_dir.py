"""`mockbroker serve --data-dir`: what was acknowledged is there again after a kill."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.cli import main
from mockbroker.cli.cluster_options import build_config
from mockbroker.client import Client
from mockbroker.server.config import SeedRecord, TopicSpec
from tests.support.librdkafka import Delivery, flush, open_consumer, poll, settings, values
from tests.support.serving import Served, free_block
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
        for _ in range(2):
            target = sent + 60
            while len(delivery.messages) < target:
                if sent < target + 30:
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


def test_groups_and_their_offsets_survive_a_kill(tmp_path):
    with Lives(tmp_path, "--topic", "t:4") as lives:
        producer = Producer(patient(lives.bootstrap))
        config = {"group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        consumer = Consumer(
            {**patient(lives.bootstrap), **config, "enable.auto.commit": False}  # only when told
        )
        try:
            for value in (b"before", b"committed"):
                producer.produce("t", value, partition=2)
            flush(producer)
            consumer.subscribe(["t"])
            assert values(poll(consumer, 2)) == ["before", "committed"]
            consumer.commit(asynchronous=False)
            lives.kill()
            lives.start()
            assert consumer.committed([TopicPartition("t", 2)], 20)[0].offset == 2
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


# --------------------------------------------------------------------------------------- the flags


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a cluster of one broker, and ten records in topic t."""
    directory = tmp_path_factory.mktemp("saved")
    records = [SeedRecord(b"value %d" % at) for at in range(10)]
    with Cluster(brokers=1, topics=[TopicSpec("t", records=records)]) as kafka:
        kafka.save(directory)
    return directory


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--data-dir", "SAVED", "--brokers", "2"), "brokers 1,2 are configured, but 1 are stored"),
        (("--load", "SAVED", "--node-ids", "7"), "brokers 7 are configured, but 1 are stored"),
        (("--load", "SAVED", "--kafka-version", "3.9"), "plays Kafka 4.3; this one plays 3.9"),
        (("--data-dir", "SAVED", "--load", "x"), "data_dir and load exclude each other"),
        (("--sync",), "--sync needs --data-dir"),
        (("--recover",), "--recover needs --data-dir or --load"),
        (("--load", "/nowhere"), "cannot read /nowhere/cluster.log: No such file"),
        (("--data-dir", "DAMAGED"), "cluster.log is damaged at byte "),
        (("--load", "DAMAGED"), "With --recover, what stands before that is kept"),
    ],
)
def test_what_does_not_fit_is_refused(saved, tmp_path, flags, complaint):
    for name in ("SAVED", "DAMAGED"):
        shutil.copytree(saved, tmp_path / name)
    path = tmp_path / "DAMAGED" / DATA
    path.write_bytes(path.read_bytes().replace(b"value 7", b"value 8"))
    arguments = [str(tmp_path / each) if each.isupper() else each for each in flags]
    result = CliRunner().invoke(main, ["serve", *arguments, "--port", "0", "--no-admin"])
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_what_is_loaded_is_left_as_it_is(saved):
    before = (saved / DATA).read_bytes()
    with Served("--load", str(saved)) as served, Client(served.bootstrap_servers) as client:
        assert client.list_offsets("t")[0].offset == 10
        client.produce("t", [b"more"])
    assert (saved / DATA).read_bytes() == before


def test_the_config_file_names_a_directory_as_well(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text('data_dir = "kitchen"\nsync = true\n')
    nothing = dict.fromkeys(("brokers", "node_ids", "host", "port", "advertised_host", "seed"))
    options = {**nothing, "rack": (), "topics": (), "configs": (), "kafka_version": None}
    config = build_config(**options, config_file=file)
    assert (config.data_dir, config.sync) == (Path("kitchen"), True)
    config = build_config(**options, config_file=file, data_dir=Path("elsewhere"))
    assert config.data_dir == Path("elsewhere")


def test_a_directory_in_use_is_refused_and_configs_are_remembered(tmp_path):
    flags = ("--data-dir", str(tmp_path), "--brokers", "1")
    with Served(*flags, "--config", "message.max.bytes=777777") as served:
        other = CliRunner().invoke(main, ["serve", *flags, "--port", "0", "--no-admin"])
        assert other.exit_code == 2
        assert f"{tmp_path} is in use by process {served.process.pid}" in other.stderr
        served.stop()
    with Cluster(
        data_dir=tmp_path
    ) as kafka:  # three brokers by default: the directory knows better
        assert kafka.call(lambda core: core.config("message.max.bytes")) == 777777
        assert kafka.call(lambda core: list(core.brokers)) == [1]
