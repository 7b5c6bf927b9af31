"""Exactly once with the Java clients: the billing program of the docs, and what fences a zombie."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.server.config import TopicSpec
from tests.clients.java.steps import Steps
from tests.clients.java.test_transactions import Transactional
from tests.support import doc_examples, maven
from tests.support.java_pipe import JavaError
from tests.support.librdkafka import open_consumer, poll, settings, values
from tests.support.waiting import wait_until

pytestmark = pytest.mark.java

PAGE = "howto/applications.md"
PARTITIONS = 2


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    topics = [TopicSpec(name, PARTITIONS, 3) for name in ("orders", "bills")]
    with Cluster(brokers=3, topics=topics) as cluster:
        yield cluster


class Programs:
    """Instances of the docs' program; whatever is left of them at the end is killed."""

    def __init__(self, kafka: Cluster, folder: Path) -> None:
        self.kafka = kafka
        self.jars = maven.jars("kafka-streams")
        self.classes = doc_examples.java_classes(PAGE, "Billing.java", self.jars, folder)
        self.log = folder / "log"
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, transactional_id: str) -> subprocess.Popen[bytes]:
        arguments = (self.kafka.bootstrap_servers, transactional_id)
        with self.log.open("ab") as log:
            program = maven.java(
                [self.classes, *self.jars], "Billing", *arguments, stdout=log, stderr=log
            )
        self.running.append(program)
        return program

    def kill(self, program: subprocess.Popen[bytes]) -> None:
        program.kill()
        program.wait()


@pytest.fixture
def programs(kafka: Cluster, tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(kafka, tmp_path)
    yield programs
    for program in programs.running:
        programs.kill(program)


def write(kafka: Cluster, orders: list[str]) -> None:
    producer = Producer(settings(kafka.bootstrap_servers))
    for order in orders:
        producer.produce("orders", order)
    assert producer.flush(60) == 0


def read(kafka: Cluster, count: int, isolation: str) -> Counter[str]:
    """So many bills, or fewer if no more come, and how often each is there."""
    with open_consumer(kafka.bootstrap_servers, isolation_level=isolation) as consumer:
        consumer.assign([TopicPartition("bills", n, 0) for n in range(PARTITIONS)])
        found = values(poll(consumer, count, 60))
        return Counter(found + values(poll(consumer, 1, 0.3)))


@pytest.mark.covers("S238", "S256")
def test_a_program_that_is_killed_bills_each_order_once(kafka: Cluster, programs: Programs) -> None:
    """A reader of uncommitted records gets each order too, and some of them twice, if it was so."""
    orders = [f"order {n}" for n in range(1000)]
    write(kafka, orders)
    for enough in (50, 400):
        program = programs.start("billing-0")
        wait_until(lambda enough=enough: len(kafka.records("bills")) > enough, 120, "bills")
        programs.kill(program)
        kafka.clock.advance("1m")  # by now the group has noticed
    programs.start("billing-0")
    assert read(kafka, 1000, "read_committed") == Counter(orders)
    stored = len(kafka.records("bills"))
    assert read(kafka, stored, "read_uncommitted") >= Counter(orders)


class Worker:
    """A consumer and a producer, each worker with a transactional id of its own."""

    def __init__(self, java: Steps, group: str, **consumer: object) -> None:
        self.java = java
        self.group = group
        self.consumer = java.consumer(group, **consumer)
        self.producer = Transactional(java)

    def read(self, topic: str, count: int) -> None:
        self.java("subscribe", self.consumer, topics=[topic])
        self.records = self.java.poll(self.consumer, count)
        assert len(self.records) == count

    def write(self, topic: str) -> None:
        self.producer("begin")
        self.producer.send(topic, *(record["value"] for record in self.records))

    def send_offsets(self) -> None:
        last = self.records[-1]
        partition = f"{last['topic']}-{last['partition']}"
        member = self.java("groupMetadata", self.consumer)
        self.producer(
            "sendOffsets",
            offsets={partition: last["offset"] + 1},
            group=self.group,
            **{name: value for name, value in member.items() if value is not None},
        )


# Kafka itself and the older clients do the same; once in each run is enough.
once = pytest.mark.parametrize(
    ("tour", "peer"), [("4.3.1", "mockbroker")], indirect=True, ids=["4.3.1"]
)


@once
@pytest.mark.covers("S249")
def test_a_zombie_cannot_commit(java: Steps) -> None:
    """It has not polled for max.poll.interval.ms, and another has its partition (KIP-447)."""
    source, target, group = java.topic(), java.topic(), java.unique("group")
    java.fill(source, range(4))
    zombie = Worker(java, group, max_poll_interval_ms=1000)
    zombie.read(source, 4)
    zombie.write(target)
    heir = Worker(java, group)
    heir.read(source, 4)
    heir.write(target)
    heir.send_offsets()
    heir.producer("commit")
    with pytest.raises(JavaError, match="CommitFailed"):
        zombie.send_offsets()
    zombie.producer("abort")
    assert committed(java, target) == ["0", "1", "2", "3"]


@once
@pytest.mark.covers("S247")
def test_an_heir_waits_for_offsets_that_are_on_their_way(java: Steps) -> None:
    """The zombie sent them while it was a member, so its transaction decides where to begin."""
    source, target, group = java.topic(), java.topic(), java.unique("group")
    java.fill(source, range(4))
    zombie = Worker(java, group)
    zombie.read(source, 4)
    zombie.write(target)
    zombie.send_offsets()
    java.admin("removeMembers", group=group)
    heir = Worker(java, group, isolation_level="read_committed")
    java("subscribe", heir.consumer, topics=[source])

    def has_partition() -> bool:
        assert java.poll(heir.consumer, 1, timeout_ms=100) == []
        return bool(java("assignment", heir.consumer))

    java.until(has_partition)
    assert java.poll(heir.consumer, 1, timeout_ms=500) == []
    zombie.producer("commit")
    java.fill(source, ["next"])
    assert [record["value"] for record in java.poll(heir.consumer, 1)] == ["next"]
    assert committed(java, target) == ["0", "1", "2", "3"]


def committed(java: Steps, topic: str) -> list[str]:
    """All that counts: what a read_committed reader gets before a record behind all of it."""
    java.fill(topic, ["the end"])
    reader = java.consumer(isolation_level="read_committed")
    java("assign", reader, partitions=[f"{topic}-0"])
    found: list[str] = []
    while "the end" not in found:
        records = java.poll(reader, 1)
        assert records, found
        found += [each["value"] for each in records]
    return found[:-1]
