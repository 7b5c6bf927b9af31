"""kafka-python: producing, reading, groups."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import (
    CommitFailedError,
    MessageSizeTooLargeError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from kafka.partitioner import Partitioner
from kafka.structs import OffsetAndMetadata

from tests.support.kafka_python import POLL_MS, TIMEOUT_S, commit, poll, settle, subscribe
from tests.support.librdkafka import create_topic, delete_records

TEN = [str(n) for n in range(10)]


class Clients:
    """Opens clients of one cluster; all are closed when the test ends."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._open = ExitStack()

    def producer(self, **config: Any) -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, **config)
        self._open.callback(producer.close)
        return producer

    def consumer(self, *topics: str, **config: Any) -> KafkaConsumer:
        """A consumer that starts at the earliest offset and commits only when told to."""
        defaults = {
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 100,
        }
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, **(defaults | config))
        self._open.callback(consumer.close)
        if topics:
            subscribe(consumer, *topics)
        return consumer

    def assigned(self, topic: str, *partitions: int, **config: Any) -> KafkaConsumer:
        """A consumer of these partitions (or of 0), without a group's help."""
        consumer = self.consumer(**config)
        consumer.assign([TopicPartition(topic, p) for p in partitions or (0,)])
        return consumer

    def fill(self, topic: str, values: Iterable[str], partition: int = 0, **config: Any) -> Any:
        """Produce; returns what the broker told of each record."""
        with closing(KafkaProducer(bootstrap_servers=self._bootstrap, **config)) as producer:
            futures = [
                producer.send(topic, value.encode(), partition=partition) for value in values
            ]
            return [future.get(TIMEOUT_S) for future in futures]

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def clients(bootstrap_servers: str) -> Iterator[Clients]:
    clients = Clients(bootstrap_servers)
    yield clients
    clients.close()


def values(records: Iterable[Any]) -> list[str]:
    return [record.value.decode() for record in records]


def offsets(records: Iterable[Any]) -> list[int]:
    return [record.offset for record in records]


# -- producing -------------------------------------------------------------------------------------


@pytest.mark.covers("S1", "S99")
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_are_stored_whatever_is_acknowledged(
    clients: Clients, topic: str, acks: object
) -> None:
    told = clients.fill(topic, TEN, acks=acks, enable_idempotence=acks == "all")
    if acks != 0:  # or else nobody told the producer
        assert [each.offset for each in told] == list(range(10))
    assert values(poll(clients.assigned(topic), 10)) == TEN


def test_a_producer_without_idempotence_is_served_as_well(clients: Clients, topic: str) -> None:
    told = clients.fill(topic, TEN, acks="all", enable_idempotence=False)
    assert [each.offset for each in told] == list(range(10))


@pytest.mark.covers("S107")
def test_a_record_that_the_topic_does_not_take_fails_alone(
    clients: Clients, bootstrap_servers: str, name: str
) -> None:
    """An idempotent producer would take it for fatal, as a sequence is missing then."""
    create_topic(bootstrap_servers, name, max_message_bytes="1000")
    producer = clients.producer(enable_idempotence=False)
    producer.send(name, b"small").get(TIMEOUT_S)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(name, b"x" * 2000).get(TIMEOUT_S)
    producer.send(name, b"small again").get(TIMEOUT_S)
    assert values(poll(clients.assigned(name), 2)) == ["small", "small again"]


@pytest.mark.covers("S109")
def test_keys_go_where_java_puts_them(clients: Clients, wide_topic: str) -> None:
    """murmur2 of the key, without its sign, modulo four."""
    producer = clients.producer()
    keys = [b"haha", b"hehe", b"eeee", *(n.to_bytes(4, "big") for n in range(8))]
    found = [producer.send(wide_topic, b"v", key=key).get(TIMEOUT_S).partition for key in keys]
    assert found == [0, 1, 3, 0, 0, 3, 3, 3, 2, 3, 3]


@pytest.mark.covers("S111")
def test_a_partitioner_may_choose_one_partition_for_all(clients: Clients, wide_topic: str) -> None:

    class First(Partitioner):
        def partition(self, topic: str, *_: object) -> int:
            return 0

    producer = clients.producer(partitioner=First())
    for n in range(20):
        producer.send(wide_topic, b"v", key=b"%d" % n)
    producer.flush(TIMEOUT_S)
    ends = clients.consumer().end_offsets([TopicPartition(wide_topic, p) for p in range(4)])
    assert [ends[TopicPartition(wide_topic, p)] for p in range(4)] == [20, 0, 0, 0]


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.covers("S17", "S21", "S26", "S129")
def test_a_seek_may_lead_into_a_batch(clients: Clients, topic: str) -> None:
    clients.fill(topic, TEN, linger_ms=50)
    consumer, partition = clients.assigned(topic), TopicPartition(topic, 0)
    consumer.seek(partition, 7)
    assert offsets(poll(consumer, 3)) == [7, 8, 9]
    assert consumer.position(partition) == 10
    consumer.seek_to_beginning(partition)
    assert offsets(poll(consumer, 1)) == [0]
    consumer.seek(partition, 9)
    assert offsets(poll(consumer, 1)) == [9]


@pytest.mark.covers("S20")
def test_after_seeking_to_the_end_only_new_records_come(clients: Clients, topic: str) -> None:
    clients.fill(topic, TEN)
    consumer, partition = clients.assigned(topic), TopicPartition(topic, 0)
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 10
    assert poll(consumer, 1, 0.3) == []
    clients.fill(topic, ["new"])
    assert offsets(poll(consumer, 1)) == [10]


@pytest.mark.covers("S18", "S27", "S348")
def test_offsets_are_found_at_both_ends_and_by_time(clients: Clients, topic: str) -> None:
    """The end offset is the next one to be written; of an empty partition it is 0."""
    partition = TopicPartition(topic, 0)
    consumer = clients.consumer()
    assert consumer.end_offsets([partition]) == {partition: 0}
    start_ms = int(time.time() * 1000) - 100_000
    producer = clients.producer(linger_ms=50)
    for after_ms in (0, 1000, 500, 3000):
        producer.send(topic, b"v", timestamp_ms=start_ms + after_ms)
    producer.flush(TIMEOUT_S)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 4}
    found = {
        after_ms: consumer.offsets_for_times({partition: start_ms + after_ms})[partition]
        for after_ms in (0, 1, 1001, 3001)
    }
    assert {after_ms: found and found.offset for after_ms, found in found.items()} == {
        0: 0,
        1: 1,
        1001: 3,
        3001: None,
    }


@pytest.mark.covers("S127")
def test_the_reset_policy_decides_where_nothing_was_committed(clients: Clients, topic: str) -> None:
    clients.fill(topic, TEN)
    partition = TopicPartition(topic, 0)
    for policy, position in (("earliest", 0), ("latest", 10)):
        consumer = clients.assigned(topic, group_id=topic, auto_offset_reset=policy)
        assert consumer.position(partition) == position
    consumer = clients.assigned(topic, group_id=topic, auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError):
        poll(consumer, 1)


@pytest.mark.covers("S128")
def test_a_deleted_position_is_reset_or_raises(
    clients: Clients, bootstrap_servers: str, topic: str
) -> None:
    clients.fill(topic, TEN)
    delete_records(bootstrap_servers, topic, 6)
    partition = TopicPartition(topic, 0)
    consumer = clients.assigned(topic)
    consumer.seek(partition, 2)
    assert offsets(poll(consumer, 4)) == [6, 7, 8, 9]
    consumer = clients.assigned(topic, auto_offset_reset="none")
    consumer.seek(partition, 2)
    with pytest.raises(OffsetOutOfRangeError):
        poll(consumer, 1)


@pytest.mark.covers("S141")
def test_a_poll_returns_no_more_than_it_was_asked_for(clients: Clients, topic: str) -> None:
    """The broker sends all 1,200 at once; the client hands them out by 500."""
    clients.fill(topic, map(str, range(1200)), linger_ms=100, batch_size=1_000_000)
    consumer = clients.assigned(topic, max_poll_records=500)
    sizes: list[int] = []
    while sum(sizes) < 1200:
        batch = consumer.poll(5000)
        assert batch
        sizes.append(sum(map(len, batch.values())))
    assert sizes == [500, 500, 200]


def test_a_paused_partition_gives_nothing_until_resumed(clients: Clients, wide_topic: str) -> None:
    clients.fill(wide_topic, ["paused"], partition=0)
    clients.fill(wide_topic, ["other"], partition=1)
    paused = TopicPartition(wide_topic, 0)
    consumer = clients.assigned(wide_topic, 0, 1)
    consumer.pause(paused)
    assert values(poll(consumer, 2, 0.5)) == ["other"]
    consumer.resume(paused)
    assert values(poll(consumer, 1)) == ["paused"]


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.covers("S153")
@pytest.mark.parametrize(
    "assignor",
    [
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    ],
    ids=lambda assignor: assignor.name,
)
def test_two_members_share_the_partitions_and_one_inherits_them(
    clients: Clients, wide_topic: str, assignor: Any
) -> None:
    config = {"group_id": wide_topic, "partition_assignment_strategy": [assignor]}
    first = clients.consumer(wide_topic, **config)
    assert settle(first) == [[0, 1, 2, 3]]
    second = clients.consumer(wide_topic, **config)
    assert [len(share) for share in settle(first, second)] == [2, 2]
    second.close()
    assert settle(first) == [[0, 1, 2, 3]]


@pytest.mark.covers("S22", "S178")
def test_a_restart_begins_at_the_last_commit(clients: Clients, topic: str) -> None:
    clients.fill(topic, TEN)
    partition = TopicPartition(topic, 0)
    consumer = clients.consumer(topic, group_id=topic)
    assert consumer.committed(partition) is None
    poll(consumer, 6)
    commit(consumer, {partition: OffsetAndMetadata(1, "so far", -1)})
    consumer.close()
    restarted = clients.consumer(topic, group_id=topic)
    assert offsets(poll(restarted, 9)) == list(range(1, 10))
    assert restarted.committed(partition, metadata=True)[:2] == (1, "so far")


def test_an_asynchronous_commit_calls_back(clients: Clients, topic: str) -> None:
    clients.fill(topic, TEN)
    consumer = clients.consumer(topic, group_id=topic)
    poll(consumer, 10)
    told: list[tuple[object, object]] = []
    consumer.commit_async(callback=lambda offsets, answer: told.append((offsets, answer)))
    deadline = time.monotonic() + TIMEOUT_S
    while not told and time.monotonic() < deadline:
        consumer.poll(50)
    [(committed, answer)] = told
    assert not isinstance(answer, Exception)
    assert committed[TopicPartition(topic, 0)].offset == 10
    assert consumer.committed(TopicPartition(topic, 0)) == 10


@pytest.mark.covers("S166")
def test_closing_commits_what_was_read(clients: Clients, topic: str) -> None:
    clients.fill(topic, TEN)
    consumer = clients.consumer(topic, group_id=topic, enable_auto_commit=True)
    poll(consumer, 10)
    consumer.close()
    assert clients.consumer(group_id=topic).committed(TopicPartition(topic, 0)) == 10


def test_a_static_member_comes_back_to_its_partitions(clients: Clients, wide_topic: str) -> None:
    def member(instance: str) -> KafkaConsumer:
        return clients.consumer(wide_topic, group_id=wide_topic, group_instance_id=instance)

    steady, restarted = member("b"), member("a")
    before = settle(steady, restarted)
    generation = steady.group_metadata().generation_id
    restarted.close()
    restarted = member("a")
    assert settle(steady, restarted) == before
    assert restarted.group_metadata().generation_id == generation


def test_a_listener_hears_of_revoked_and_assigned_partitions(
    clients: Clients, wide_topic: str
) -> None:
    class Listener(ConsumerRebalanceListener):
        def __init__(self) -> None:
            self.told: list[tuple[str, list[int]]] = []

        def on_partitions_revoked(self, revoked: Any) -> None:
            self.told.append(("revoked", sorted(each.partition for each in revoked)))

        def on_partitions_assigned(self, assigned: Any) -> None:
            self.told.append(("assigned", sorted(each.partition for each in assigned)))

    listener = Listener()
    config = {
        "group_id": wide_topic,
        "partition_assignment_strategy": [RangePartitionAssignor],
    }
    first = clients.consumer(**config)
    subscribe(first, wide_topic, listener=listener)
    settle(first)
    second = clients.consumer(wide_topic, **config)
    mine, _ = settle(first, second)
    told = [each for each in listener.told if each[1]]
    assert told[0] == ("assigned", [0, 1, 2, 3])
    assert told[-2:] == [("revoked", [0, 1, 2, 3]), ("assigned", mine)]


@pytest.mark.covers("S126")
def test_a_commit_from_outside_is_refused_while_there_are_members(
    clients: Clients, wide_topic: str
) -> None:
    outsider = clients.assigned(wide_topic, group_id=wide_topic)
    position = {TopicPartition(wide_topic, 0): OffsetAndMetadata(0, "", -1)}
    outsider.commit(position)
    settle(clients.consumer(wide_topic, group_id=wide_topic))
    with pytest.raises(CommitFailedError, match="UnknownMemberIdError"):
        outsider.commit(position)


def test_a_pattern_matches_from_the_start_of_the_name(
    clients: Clients, bootstrap_servers: str, topic: str
) -> None:
    create_topic(bootstrap_servers, f"{topic}-more")
    create_topic(bootstrap_servers, f"not-{topic}")
    # The first broker that it asks may not have read of the topics yet.
    consumer = clients.consumer(group_id=topic, metadata_max_age_ms=200)
    consumer.subscribe(pattern=f"{topic}.*")
    expected = {topic, f"{topic}-more"}
    deadline = time.monotonic() + TIMEOUT_S
    while {each.topic for each in consumer.assignment()} != expected:
        assert time.monotonic() < deadline, consumer.assignment()
        consumer.poll(POLL_MS)
