"""confluent-kafka: membership of groups, commits, and what a restart finds."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.support.librdkafka import (
    NO_OFFSET,
    TIMEOUT_S,
    admin_client,
    create_topic,
    offsets,
    open_consumer,
    owned,
    poll,
    produce,
    until,
    values,
)

TEN = [str(n) for n in range(10)]


@pytest.fixture
def topic(bootstrap_servers: str, name: str) -> str:
    """A topic of four partitions."""
    create_topic(bootstrap_servers, name, 4)
    return name


def settled(*consumers: Consumer, partitions: int = 4) -> bool:
    """Whether these consumers share all partitions and each has some."""
    shares = [owned(consumer) for consumer in consumers]
    return all(shares) and sorted(p for share in shares for p in share) == list(range(partitions))


@pytest.mark.covers("S153", "S186")
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_two_members_share_the_partitions_and_one_inherits_them(
    bootstrap_servers: str, topic: str, assignor: str
) -> None:
    config = {
        "group_id": topic,
        "partition_assignment_strategy": assignor,
        "heartbeat_interval_ms": 100,
    }
    with open_consumer(bootstrap_servers, **config) as first:
        first.subscribe([topic])
        until(lambda: settled(first), first)
        with open_consumer(bootstrap_servers, **config) as second:
            second.subscribe([topic])
            until(lambda: settled(first, second), first, second)
            assert len(owned(first)) == len(owned(second)) == 2
            for partition in range(4):
                produce(bootstrap_servers, topic, [str(partition)], partition=partition)
            got = {first: set(), second: set()}
            deadline = time.monotonic() + TIMEOUT_S
            while sum(map(len, got.values())) < 4:
                assert time.monotonic() < deadline
                for consumer, records in got.items():
                    records.update(message.partition() for message in consumer.consume(4, 0.05))
            assert got == {first: set(owned(first)), second: set(owned(second))}
            second.unsubscribe()
            until(lambda: owned(second) == [], first, second)
        until(lambda: settled(first), first)


def test_a_cooperative_member_gives_up_only_what_moves(bootstrap_servers: str, topic: str) -> None:
    config = {
        "group_id": topic,
        "partition_assignment_strategy": "cooperative-sticky",
        "heartbeat_interval_ms": 100,
    }
    revoked: list[int] = []

    def on_revoke(_: Consumer, partitions: list[TopicPartition]) -> None:
        revoked.extend(each.partition for each in partitions)

    with open_consumer(bootstrap_servers, **config) as first:
        first.subscribe([topic], on_revoke=on_revoke)
        until(lambda: settled(first), first)
        with open_consumer(bootstrap_servers, **config) as second:
            second.subscribe([topic])
            until(lambda: settled(first, second), first, second)
            assert sorted(revoked) == owned(second)
            second.unsubscribe()
            until(lambda: owned(second) == [], first, second)
        until(lambda: settled(first), first)
        first.unsubscribe()


@pytest.mark.covers("S22")
def test_a_restart_begins_at_the_last_commit(bootstrap_servers: str, topic: str) -> None:
    """Committed 1, read up to position 6, and gone: five records come a second time."""
    produce(bootstrap_servers, topic, TEN)
    assert committed(bootstrap_servers, topic) == NO_OFFSET
    with open_consumer(bootstrap_servers, group_id=topic) as consumer:
        consumer.subscribe([topic])
        [first] = poll(consumer, 1)
        consumer.commit(message=first, asynchronous=False)
        assert offsets(poll(consumer, 5)) == [1, 2, 3, 4, 5]
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == 6
    assert committed(bootstrap_servers, topic) == 1
    with open_consumer(bootstrap_servers, group_id=topic) as consumer:
        consumer.subscribe([topic])
        assert offsets(poll(consumer, 9)) == list(range(1, 10))


def committed(bootstrap: str, topic: str, partition: int = 0) -> int:
    """What the group named like the topic has committed."""
    with open_consumer(bootstrap, group_id=topic) as consumer:
        [found] = consumer.committed([TopicPartition(topic, partition)], TIMEOUT_S)
        assert found.error is None
        offset: int = found.offset
        return offset


@pytest.mark.covers("S166")
def test_closing_commits_what_was_read(bootstrap_servers: str, topic: str) -> None:
    produce(bootstrap_servers, topic, TEN)
    with open_consumer(bootstrap_servers, group_id=topic, enable_auto_commit=True) as consumer:
        consumer.subscribe([topic])
        poll(consumer, 10)
    assert committed(bootstrap_servers, topic) == 10


def test_an_asynchronous_commit_calls_back(bootstrap_servers: str, topic: str) -> None:
    done = threading.Event()
    told: list[tuple[object, list[TopicPartition]]] = []

    def on_commit(error: object, partitions: list[TopicPartition]) -> None:
        told.append((error, partitions))
        done.set()

    produce(bootstrap_servers, topic, TEN)
    with open_consumer(bootstrap_servers, group_id=topic, on_commit=on_commit) as consumer:
        consumer.subscribe([topic])
        poll(consumer, 10)
        metadata = "so far"
        position = TopicPartition(topic, 0, 4, metadata)
        assert consumer.commit(offsets=[position], asynchronous=True) is None
        until(done.is_set, consumer)
        [(error, [answer])] = told
        assert (error, answer.error, answer.offset) == (None, None, 4)
        [found] = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        assert (found.offset, found.metadata) == (4, metadata)


@pytest.mark.covers("S151")
def test_partitions_begin_each_at_its_own_commit(bootstrap_servers: str, topic: str) -> None:
    for partition in (0, 1):
        produce(bootstrap_servers, topic, TEN, partition=partition)
    starts = [TopicPartition(topic, 0, 9), TopicPartition(topic, 1, 5)]
    with open_consumer(bootstrap_servers, group_id=topic) as consumer:
        consumer.commit(offsets=starts, asynchronous=False)
    with open_consumer(bootstrap_servers, group_id=topic) as consumer:
        consumer.subscribe([topic])
        found = sorted((message.partition(), message.offset()) for message in poll(consumer, 6))
    assert found == [(0, 9), (1, 5), (1, 6), (1, 7), (1, 8), (1, 9)]


@pytest.mark.covers("S24")
def test_a_moved_partition_is_read_again_from_the_commit(
    bootstrap_servers: str, topic: str
) -> None:
    """Position 8, commit 3: whoever gets the partition starts at 3."""
    for partition in range(4):
        produce(bootstrap_servers, topic, TEN, partition=partition)
    config = {"group_id": topic, "heartbeat_interval_ms": 100}
    with open_consumer(bootstrap_servers, **config) as first:
        first.subscribe([topic])
        poll(first, 40)
        commits = [TopicPartition(topic, partition, 3) for partition in range(4)]
        first.commit(offsets=commits, asynchronous=False)
        with open_consumer(bootstrap_servers, **config) as second:
            second.subscribe([topic])
            again: list[tuple[int, int]] = []

            def all_again() -> bool:
                return settled(first, second) and len(again) >= 28

            deadline = time.monotonic() + TIMEOUT_S
            while not all_again():
                assert time.monotonic() < deadline, again
                again.extend(
                    (message.partition(), message.offset())
                    for consumer in (first, second)
                    for message in consumer.consume(50, 0.05)
                )
    assert sorted(again) == [(partition, n) for partition in range(4) for n in range(3, 10)]


def test_a_static_member_comes_back_to_its_partitions(bootstrap_servers: str, topic: str) -> None:
    """Closing does not leave the group, so nobody else is disturbed."""

    def config(instance: str) -> dict[str, object]:
        return {"group_id": topic, "group_instance_id": instance, "heartbeat_interval_ms": 100}

    disturbed: list[object] = []
    with open_consumer(bootstrap_servers, **config("b")) as steady:
        steady.subscribe([topic], on_revoke=lambda *_: disturbed.append(1))
        with open_consumer(bootstrap_servers, **config("a")) as restarted:
            restarted.subscribe([topic])
            until(lambda: settled(steady, restarted), steady, restarted)
            before, kept = owned(restarted), owned(steady)
        disturbed.clear()
        with open_consumer(bootstrap_servers, **config("a")) as restarted:
            restarted.subscribe([topic])
            until(lambda: settled(steady, restarted), steady, restarted)
            assert (owned(restarted), owned(steady)) == (before, kept)
            assert disturbed == []
    admin = admin_client(bootstrap_servers)
    found = admin.describe_consumer_groups([topic])[topic].result(TIMEOUT_S)
    assert {member.group_instance_id for member in found.members} == {"a", "b"}


@pytest.mark.covers("S126")
def test_a_consumer_without_membership_may_commit_for_an_empty_group_only(
    bootstrap_servers: str, topic: str
) -> None:
    """A simple commit among active members is refused, as they would not know of it."""
    position = [TopicPartition(topic, 0, 0)]
    with open_consumer(bootstrap_servers, group_id=topic) as simple:
        simple.assign(position)
        [answer] = simple.commit(offsets=position, asynchronous=False)
        assert answer.error is None
        with open_consumer(bootstrap_servers, group_id=topic) as member:
            member.subscribe([topic])
            until(lambda: settled(member), member)
            with pytest.raises(KafkaException) as failure:
                simple.commit(offsets=position, asynchronous=False)
        assert failure.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID


@pytest.mark.covers("S125")
def test_a_new_subscription_replaces_the_old_one(bootstrap_servers: str, topic: str) -> None:
    other = f"{topic}-other"
    create_topic(bootstrap_servers, other)
    produce(bootstrap_servers, topic, ["a"])
    produce(bootstrap_servers, other, ["b"])
    with open_consumer(bootstrap_servers, group_id=topic) as consumer:
        consumer.subscribe([topic])
        assert values(poll(consumer, 1)) == ["a"]
        consumer.subscribe([other])
        assert values(poll(consumer, 1)) == ["b"]
        assert {each.topic for each in consumer.assignment()} == {other}
        consumer.unsubscribe()
        until(lambda: consumer.assignment() == [], consumer)
        assert group_state(bootstrap_servers, topic) == "EMPTY"


def group_state(bootstrap: str, group: str) -> str:
    admin = admin_client(bootstrap)
    found = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    name: str = found.state.name
    return name


@pytest.mark.covers("S42")
def test_a_pattern_begins_with_a_caret_and_is_not_anchored_at_its_end(
    bootstrap_servers: str, topic: str
) -> None:
    for suffix in ("", "c", "cc-more"):
        create_topic(bootstrap_servers, f"{topic}-topi{suffix}")
    with open_consumer(bootstrap_servers, group_id=topic) as consumer:
        consumer.subscribe([f"^{topic}-topic*"])
        expected = {f"{topic}-topi{suffix}" for suffix in ("", "c", "cc-more")}
        until(lambda: {each.topic for each in consumer.assignment()} == expected, consumer)


@pytest.mark.covers("S164")
def test_unusable_settings_are_refused_without_a_broker(name: str) -> None:
    with pytest.raises(ValueError, match=r"group\.id"):
        Consumer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    with pytest.raises(KafkaException, match="none-such"):
        Consumer(
            {
                "bootstrap.servers": "127.0.0.1:1",
                "group.id": name,
                "partition.assignment.strategy": "none-such",
            }
        )
    with open_consumer("127.0.0.1:1", group_id=name) as consumer:
        for topics in (None, "not a list"):
            with pytest.raises(TypeError):
                consumer.subscribe(topics)
        for topics in ([], [""]):
            with pytest.raises(KafkaException):
                consumer.subscribe(topics)
