"""How each assignor spreads partitions, and what a rebalance takes away from whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from kafka import KafkaConsumer
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker_protocol.consumer_protocol import decode_subscription
from tests.support.kafka_python import settle, subscribe
from tests.support.members import Member, Members, Partition, look
from tests.support.watched import fill


@pytest.mark.covers("S203")
@pytest.mark.parametrize(
    ("partitions", "shares"),
    [
        (2, [[0, 1]]),
        (4, [[0, 1], [2, 3]]),
        (3, [[0, 1], [2]]),
    ],
)
@pytest.mark.mock_kafka(topics={})
def test_range_gives_each_member_a_stretch_of_each_topic(
    kafka: Cluster, members: Members, partitions: int, shares: list[list[int]]
) -> None:
    """Members in the order of their ids; the first ones get one more; the same for every topic."""
    topics = ["hermes.demo.pandc", "other"]
    for topic in topics:
        kafka.topic(topic).create(partitions)
    group = [
        members("g", *topics, client_id=f"client-{n}", partition_assignment_strategy="range")
        for n in range(len(shares))
    ]
    owned = members.settle(*group, partitions=2 * partitions)
    assert owned == {
        f"client-{n}": [(topic, index) for topic in topics for index in share]
        for n, share in enumerate(shares)
    }


@pytest.mark.covers("S204")
@pytest.mark.mock_kafka(topics={"a": 3, "b": 3})
def test_round_robin_deals_all_partitions_of_all_topics(members: Members) -> None:
    """a0, a2, b1 to the first member and a1, b0, b2 to the second."""
    group = [
        members("g", "a", "b", client_id=name, partition_assignment_strategy="roundrobin")
        for name in ("client-0", "client-1")
    ]
    assert members.settle(*group, partitions=6) == {
        "client-0": [("a", 0), ("a", 2), ("b", 1)],
        "client-1": [("a", 1), ("b", 0), ("b", 2)],
    }


def kafka_python(kafka: Cluster, name: str, assignor: Any) -> KafkaConsumer:
    """A member of group "g" that wants topic "t"."""
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        client_id=name,
        heartbeat_interval_ms=50,
        partition_assignment_strategy=[assignor],
    )
    subscribe(consumer, "t")
    return consumer


@pytest.mark.covers("S205")
@pytest.mark.parametrize(
    ("assignor", "moves"), [(StickyPartitionAssignor, 2), (RoundRobinPartitionAssignor, 4)]
)
@pytest.mark.mock_kafka(topics={"t": 6})
def test_sticky_moves_no_more_than_it_must(kafka: Cluster, assignor: Any, moves: int) -> None:
    """Of three members with two partitions each one leaves: two partitions move, its own. Round
    robin deals anew and moves more.
    """
    consumers = [kafka_python(kafka, f"client-{n}", assignor) for n in range(3)]
    try:
        before = settle(*consumers, partitions=6)
        consumers.pop(1).close()
        del before[1]
        after = settle(*consumers, partitions=6)
    finally:
        for consumer in consumers:
            consumer.close()
    assert sum(len({*now} - {*was}) for now, was in zip(after, before, strict=True)) == moves


class Mine(RoundRobinPartitionAssignor):
    """An assignor that no broker has heard of, with opaque bytes in its metadata."""

    name = "mine"

    def metadata(self, topics: Any) -> Any:
        metadata = super().metadata(topics)
        metadata.user_data = b"\x00opaque\xff"
        return metadata


@pytest.mark.covers("S206")
def test_an_assignor_of_ones_own_is_none_of_the_brokers_business(kafka: Cluster) -> None:
    """Its name is the group's protocol, its bytes reach the other members as they were."""
    consumer = kafka_python(kafka, "mine", Mine)
    try:
        settle(consumer)
        with Client(kafka.bootstrap_servers) as client:
            described = client.groups.describe("g")
        assert (described.group_state, described.protocol_data) == ("Stable", "mine")
        (member,) = described.members
        assert decode_subscription(member.member_metadata).user_data == b"\x00opaque\xff"
    finally:
        consumer.close()


@pytest.mark.covers("S206")
def test_members_without_a_common_assignor_cannot_be_in_one_group(
    kafka: Cluster, members: Members
) -> None:
    """INCONSISTENT_GROUP_PROTOCOL to the newcomer; the group goes on as it was."""
    one = members("g", "t", partition_assignment_strategy="range")
    members.settle(one, partitions=4)
    before = look(kafka, "g")
    other = members("g", "t", partition_assignment_strategy="roundrobin")
    members.until(lambda: bool(other.errors))
    assert other.errors[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    assert look(kafka, "g") == before


@pytest.mark.covers("S206")
def test_the_protocol_is_one_that_all_members_support(kafka: Cluster, members: Members) -> None:
    """Preferred by most among those that everybody offers."""
    both = members("g", "t", partition_assignment_strategy="roundrobin,range")
    members.settle(both, partitions=4)
    with Client(kafka.bootstrap_servers) as client:
        assert client.groups.describe("g").protocol_data == "roundrobin"
        one = members("g", "t", partition_assignment_strategy="range")
        members.settle(both, one, partitions=4)
        assert client.groups.describe("g").protocol_data == "range"


@pytest.mark.covers("S219")
@pytest.mark.mock_kafka(topics={"t": 6})
def test_eager_members_give_everything_up_before_anyone_gets_anything(members: Members) -> None:
    """A third member joins: each revocation precedes each assignment of the new generation."""
    eager = {"partition_assignment_strategy": "range"}
    group = [members("g", "t", **eager) for _ in range(2)]
    before = members.settle(*group, partitions=6)
    for member in group:
        member.told()
    newcomer = members("g", "t", **eager)
    members.settle(*group, newcomer, partitions=6)
    revoked = [e for m in group for e in m.events if e.kind == "revoked"]
    assigned = [e for m in (*group, newcomer) for e in m.events if e.kind == "assigned"]
    assert sorted(sorted(e.partitions) for e in revoked) == sorted(before.values())
    assert [len(e.partitions) for e in assigned] == [2, 2, 2]
    assert max(e.at_s for e in revoked) < min(e.at_s for e in assigned)


def hold_joins(kafka: Cluster, member: Member, given_up: Sequence[TopicPartition]) -> None:
    """A member that has given up partitions joins no new generation until the rule is removed.

    Otherwise a member whose SyncGroup comes after that join would still own its partitions, and
    join the new generation with them.
    """
    if given_up:
        kafka.faults.add(
            match={"api": "JoinGroup", "client_id": member.name}, do={"hold": "before"}
        )


@pytest.mark.covers("S220")
@pytest.mark.mock_kafka(topics={"a": 3, "b": 3})
def test_a_cooperative_rebalance_stops_only_what_moves(kafka: Cluster, members: Members) -> None:
    """Two partitions of six move to the third member, in two generations; while they are nobody's,
    the four others deliver.
    """
    cooperative = {"partition_assignment_strategy": "cooperative-sticky"}
    group = [members("g", "a", "b", **cooperative) for _ in range(2)]
    before = members.settle(*group, partitions=6)
    assert sorted(map(len, before.values())) == [3, 3]
    generation = look(kafka, "g").generation
    for member in group:
        member.told()
        member.on_revoked = partial(hold_joins, kafka, member)
    newcomer = members("g", "a", "b", **cooperative)

    def moving() -> set[Partition]:
        return {p for m in group for e in m.events if e.kind == "revoked" for p in e.partitions}

    members.until(lambda: len(moving()) == 2, polling=group)
    fill(kafka, "a", 3)
    fill(kafka, "b", 3)
    staying = {p for owned in before.values() for p in owned} - moving()
    # The newcomer has not been polled: it cannot take over what the others have given up.
    members.until(lambda: sum(len(member.records) for member in group) >= 4, polling=group)
    assert {(r.topic(), r.partition()) for m in group for r in m.records} == staying
    for member in group:
        member.on_revoked = None
    kafka.faults.clear()
    after = members.settle(*group, newcomer, partitions=6)
    assert look(kafka, "g").generation == generation + 2
    assert set(after[newcomer.name]) == moving()
    for member in group:
        assert set(after[member.name]) == set(before[member.name]) - moving()
        assert {event.kind for event in member.events if event.partitions} <= {"revoked"}
    members.collect(2, newcomer)
