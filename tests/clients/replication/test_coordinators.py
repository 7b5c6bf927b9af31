"""confluent-kafka's members while their coordinator dies, returns, reads its log or is missing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.librdkafka import open_consumer, produce
from tests.support.librdkafka import settings as client_settings
from tests.support.members import Members, look
from tests.support.replicated import TOPIC, Brokers
from tests.support.request_log import RequestLog
from tests.support.watched import fill, members

__all__ = ["members"]

OFFSETS = "__consumer_offsets"


def coordinator(kafka: Cluster, group: str) -> int:
    """The broker that coordinates a group, -1 for none."""

    def find(cluster) -> int:  # type: ignore[no-untyped-def]
        index = cluster.find_coordinator_partition(group)
        leader: int = cluster.topics[OFFSETS].partitions[index].leader_id
        return leader

    return kafka.call(find)


def full_isr(kafka: Cluster) -> Callable[[], bool]:
    return lambda: kafka.call(
        lambda c: all(len(p.isr) == len(p.replicas) for p in c.topics[OFFSETS].partitions)
    )


@pytest.mark.covers("S194", "S195", "S298")
def test_a_group_goes_on_with_the_next_coordinator_and_with_the_first_one_again(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """It dies; the next replica takes over, with generation, members and offsets as they were. Back
    and elected, it is the coordinator again.
    """
    fill(kafka, "t", 40)
    one, two = members("g", "t"), members("g", "t")
    owned = members.settle(one, two, partitions=4)
    members.collect(40)
    one.commit()
    before = look(kafka, "g")
    for each in (one, two):
        each.told()  # what led up to this
    first = coordinator(kafka, "g")
    kafka.broker(first).stop(how="unclean")
    second = coordinator(kafka, "g")
    assert second not in (first, -1)
    beats = len(log.of(ApiKey.HEARTBEAT))

    def beaten() -> bool:
        answered = [each for each in log.of(ApiKey.HEARTBEAT)[beats:] if each.node_id == second]
        return {each.client_id for each in answered} == {one.name, two.name}

    members.until(beaten, "heartbeats at the next coordinator")
    assert look(kafka, "g") == before
    assert {name: sorted(m.owned) for name, m in ((one.name, one), (two.name, two))} == owned
    partition = min(one.owned)
    assert one.committed(partition)[partition] == 10
    kafka.broker(first).start()
    members.until(full_isr(kafka), "an ISR that is full")
    kafka.group("g").move_coordinator(first)
    log.clear()
    members.until(
        lambda: (
            {e.client_id for e in log.of(ApiKey.HEARTBEAT) if e.node_id == first}
            == {one.name, two.name}
        ),
        "heartbeats at the first coordinator",
    )
    assert look(kafka, "g") == before
    assert one.told() == two.told() == []


@pytest.mark.covers("S147", "S162")
def test_a_member_stays_while_its_coordinator_reads_its_log(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """That takes longer than session.timeout.ms and max.poll.interval.ms. Heartbeats are welcome
    all the while, offsets are asked for again and again with pauses, and nobody leaves.
    """
    fill(kafka, "t", 4)
    member = members("g", "t", session_timeout_ms=6_000, max_poll_interval_ms=6_100)
    members.settle(member, partitions=4)
    members.collect(4)
    member.commit()
    before = look(kafka, "g")
    log.clear()
    load_ms = 8_000
    kafka.group("g").unload_coordinator(load=load_ms)
    with (
        open_consumer(kafka.bootstrap_servers, group_id="g") as other,
        ThreadPoolExecutor() as pool,
    ):
        asking = pool.submit(other.committed, [TopicPartition("t", 0)], 20)
        members.until(asking.done, "an answer")
    assert [each.offset for each in asking.result()] == [1]
    asked = log.of(ApiKey.OFFSET_FETCH)
    errors = [error_of_fetch(each.response) for each in asked]
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert errors == [loading] * (len(errors) - 1) + [ErrorCode.NONE]
    assert 2 <= len(errors) <= 1 + load_ms // BACKOFF_MS
    assert {each.response.error_code for each in log.of(ApiKey.HEARTBEAT)} <= {ErrorCode.NONE}
    assert log.of(ApiKey.LEAVE_GROUP) == []
    assert look(kafka, "g") == before


BACKOFF_MS = 50  # librdkafka waits for 100, give or take a fifth


def error_of_fetch(response: Any) -> int:
    """Of an OffsetFetch; from v8 on there is one for each group."""
    error: int = (response.groups or [response])[0].error_code
    return error


@pytest.mark.covers("S160")
@pytest.mark.mock_kafka(configs={"group.initial.rebalance.delay.ms": "60000"})
def test_polls_come_back_empty_while_a_join_is_not_finished(
    kafka: Cluster, log: RequestLog
) -> None:
    """The join waits for others; when it is over the next poll has the assignment, and nobody has
    asked to join a second time.
    """
    brokers = Brokers(kafka)
    kafka.call(lambda cluster: cluster.ensure_internal_topic(OFFSETS))
    produce(brokers.bootstrap, "t", ["a"])
    with open_consumer(brokers.bootstrap, group_id="g") as consumer:
        consumer.subscribe(["t"])
        brokers.until(lambda: _waiting(kafka, "g") == 1 and consumer.poll(0.01) is None)
        for _ in range(3):
            assert consumer.poll(0.2) is None
            assert consumer.assignment() == []
        kafka.clock.advance("61s")
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"a"
    joins = [each for each in log.of(ApiKey.JOIN_GROUP) if each.response.error_code == 0]
    assert len(joins) == 1


def _waiting(kafka: Cluster, group: str) -> int:
    """How many members a group has that is about to balance."""
    found = look(kafka, group)
    return len(found.owned) if found.state == "PreparingRebalance" else 0


@pytest.mark.covers("S171")
def test_a_sync_commit_waits_for_the_answer_and_an_async_one_does_not(kafka: Cluster) -> None:
    """The offset is answered when all in the ISR have it, and one of them is on hold."""
    brokers = Brokers(kafka)
    produce(brokers.bootstrap, "t", ["a"])
    told: list[KafkaError | None] = []
    with open_consumer(
        brokers.bootstrap, group_id="g", on_commit=lambda error, _: told.append(error)
    ) as consumer:
        offset = [TopicPartition("t", 0, 1)]
        assert consumer.commit(offsets=offset, asynchronous=False)[0].error is None
        leader = coordinator(kafka, "g")
        follower = next(n for n in kafka.call(lambda c: list(c.brokers)) if n != leader)
        kafka.topic(OFFSETS).lag_follower(follower)
        consumer.commit(offsets=offset, asynchronous=True)
        consumer.poll(0.3)
        assert told == []
        kafka.topic(OFFSETS).lag_follower(follower, release=True)
        brokers.until(lambda: consumer.poll(0.05) is None and told != [])
        assert told == [None]


@pytest.mark.covers("S269", "S277")
@pytest.mark.mock_kafka(
    configs={"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
)
def test_without_a_coordinator_nobody_joins_until_it_is_back(
    kafka: Cluster, log: RequestLog
) -> None:
    """The offsets topic has one replica, and its broker is gone: COORDINATOR_NOT_AVAILABLE, again
    and again, with pauses.
    """
    brokers = Brokers(kafka)
    kafka.call(lambda cluster: cluster.ensure_internal_topic(OFFSETS))
    only = coordinator(kafka, "g")
    kafka.call(
        lambda c: c.create_topic(TOPIC, assignments={0: [n for n in c.brokers if n != only]})
    )
    produce(brokers.bootstrap, TOPIC, ["a"])
    kafka.broker(only).stop(how="unclean")
    log.clear()
    consumer = Consumer(
        client_settings(
            brokers.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
    )
    try:
        consumer.subscribe([TOPIC])
        asked = lambda: log.of(ApiKey.FIND_COORDINATOR)  # noqa: E731
        brokers.until(lambda: consumer.poll(0.05) is None and len(asked()) >= 3)
        assert {error_of(each.response) for each in asked()} == {
            ErrorCode.COORDINATOR_NOT_AVAILABLE
        }
        assert log.of(ApiKey.JOIN_GROUP) == []
        kafka.broker(only).start()
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"a"
    finally:
        consumer.close()


def error_of(response: Any) -> int:
    """Of a FindCoordinator; from v4 on there is one for each key."""
    error: int = (response.coordinators or [response])[0].error_code
    return error


@pytest.mark.covers("S291")
def test_a_topic_is_deleted_under_its_group(kafka: Cluster, members: Members) -> None:
    """The member hears that the topic is unknown; the group stays, its offsets go."""
    fill(kafka, "t", 8)
    member = members("g", "t", topic_metadata_refresh_interval_ms=100)
    members.settle(member, partitions=4)
    members.collect(8)
    member.commit()
    assert member.committed(("t", 0)) == {("t", 0): 2}
    kafka.call(lambda cluster: cluster.delete_topic("t"))
    members.until(
        lambda: KafkaError.UNKNOWN_TOPIC_OR_PART in {error.code() for error in member.errors},
        "an error that names no such topic",
    )
    kafka.topic("t").create(4)
    assert member.committed(("t", 0)) == {("t", 0): -1001}
    assert len(look(kafka, "g").owned) == 1
