"""`mockbroker serve --data-dir`: acknowledged records survive a kill."""

from __future__ import annotations

import contextlib
import resource
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mockbroker import Cluster
from mockbroker.cli import main
from mockbroker.cli.cluster_options import build_config
from mockbroker.client import Client
from mockbroker.client.errors import ClientError
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


class Load:
    """Clients of topic t that go on over kills, and what the cluster has acknowledged to them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.delivery = Delivery()
        self.sent = 0
        self.committed_transactions: list[int] = []
        self.committed_offset = 0
        # What a topic and a user of each name were answered.
        self.topics: dict[str, Future[None]] = {}
        self.users: dict[str, Future[None]] = {}
        self._stopped = threading.Event()
        self._producer = Producer(
            patient(bootstrap, enable_idempotence=True, linger_ms=0, acks="all")
        )
        self._admin = AdminClient(patient(bootstrap))
        self._threads = [
            threading.Thread(target=each) for each in (self._transactions, self._commits)
        ]
        for thread in self._threads:
            thread.start()

    def produce_until(self, deliveries: int) -> None:
        """Send records, and create a topic and a user now and then, until so many are delivered."""
        while len(self.delivery.messages) < deliveries:
            if self.sent < deliveries + 30:
                value = b"%d" % self.sent
                self._producer.produce(
                    "t", value, partition=self.sent % 2, on_delivery=self.delivery
                )
                self.sent += 1
                if self.sent % 25 == 0:
                    self._create(f"made{len(self.topics)}")
            self._producer.poll(0.001)

    def _create(self, name: str) -> None:
        topic = NewTopic(name, 3, 1, config={"retention.ms": "123456"})
        self.topics[name] = self._admin.create_topics([topic])[name]
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion(name, info, b"secret")
        self.users[name] = self._admin.alter_user_scram_credentials([user])[name]

    def _transactions(self) -> None:
        producer = Producer(patient(self.bootstrap, transactional_id="x"))
        self._again(lambda: producer.init_transactions(30))
        number = 0
        while not self._stopped.is_set():
            producer.begin_transaction()
            for partition in (2, 3):
                producer.produce("t", b"%d" % number, partition=partition)
            self._again(lambda: producer.commit_transaction(30))
            self.committed_transactions.append(number)
            number += 1

    def _again(self, call: Callable[[], object]) -> None:
        """Call until it succeeds, as long as the client says that it may be called again."""
        while True:
            try:
                call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def _commits(self) -> None:
        consumer = Consumer({**patient(self.bootstrap), "group.id": "g"})
        offset = 0
        while not self._stopped.is_set():
            offset += 1
            with contextlib.suppress(KafkaException):  # the cluster is not there
                (found,) = consumer.commit(
                    offsets=[TopicPartition("t", 0, offset)], asynchronous=False
                )
                if found.error is None:
                    self.committed_offset = offset
        consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        flush(self._producer)

    def check(self) -> None:
        """All that was acknowledged is there, once, and no part of a transaction."""
        assert not self.delivery.errors
        partitions = [TopicPartition("t", index, 0) for index in range(4)]
        transactions = len(self.committed_transactions)
        assert transactions
        with open_consumer(self.bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign(partitions)
            found = poll(consumer, self.sent + 2 * transactions)
        got = {
            index: [int(m.value() or b"") for m in found if m.partition() == index]
            for index in range(4)
        }
        assert [got[0], got[1]] == [list(range(index, self.sent, 2)) for index in (0, 1)]
        assert got[2] == got[3] == self.committed_transactions
        with open_consumer(self.bootstrap, group_id="g") as consumer:
            committed = consumer.committed([TopicPartition("t", 0)], 20)
        assert committed[0].offset >= self.committed_offset > 0
        created, added = succeeded(self.topics), succeeded(self.users)
        topics = self._admin.list_topics(timeout=20).topics
        made = {name: len(topics[name].partitions) for name in topics if name.startswith("made")}
        assert set(made.values()) <= {3}  # none is half made
        users = self._admin.describe_user_scram_credentials().result(20)
        assert created
        assert created <= made.keys()
        assert added
        assert added <= users.keys()


def succeeded(answers: dict[str, Future[None]]) -> set[str]:
    return {
        name for name, future in answers.items() if future.done() and future.exception() is None
    }


def check_kills(directory: Path, draw: Random, rounds: int, *flags: str) -> None:
    with Lives(directory, "--topic", "t:4:3", *flags) as lives:
        load = Load(lives.bootstrap)
        try:
            for _ in range(rounds):
                load.produce_until(len(load.delivery.messages) + draw.randint(1, 80))
                lives.kill()  # some of everything is on its way
                lives.start()
            load.produce_until(len(load.delivery.messages) + 30)
        finally:
            load.stop()
        load.check()


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), marks=pytest.mark.slow, id="written"),
        pytest.param(("--sync",), id="synced"),
    ],
)
def test_clients_go_on_over_kills_and_all_that_was_acknowledged_is_there(tmp_path, flags):
    check_kills(tmp_path, Random(1), 3, *flags)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_clients_go_on_over_many_kills(tmp_path, seed):
    check_kills(tmp_path, Random(seed), 12, "--sync")


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


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs limits of other processes")
def test_a_disk_that_is_full_ends_the_process_with_one_line_and_loses_nothing(tmp_path):
    acknowledged = 0
    with Served("--data-dir", str(tmp_path), "--brokers", "1", "--topic", "t") as served:
        size = (tmp_path / DATA).stat().st_size + 5000
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (size, size))
        with Client(served.bootstrap_servers) as client, contextlib.suppress(ClientError):
            while acknowledged < 100:
                client.produce("t", [b"%d" % acknowledged * 10])
                acknowledged += 1
        _, stderr = served.process.communicate(timeout=60)
    assert 0 < acknowledged < 100
    (line,) = stderr.decode().splitlines()
    assert line == (
        f"mockbroker: cannot write {tmp_path / DATA}: File too large; the cluster stops. "
        "Start it again when the disk can be written."
    )
    assert served.process.returncode == 1
    with Served("--data-dir", str(tmp_path)) as served:
        with Client(served.bootstrap_servers) as client:
            assert client.list_offsets("t")[0].offset == acknowledged
            client.produce("t", [b"goes on"])
        stderr_text = served.stop().stderr
    assert "cut off at byte" in stderr_text


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
