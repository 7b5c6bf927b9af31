"""librdkafka's consumers share partitions by heartbeats alone."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.members import Partition
from tests.support.new_members import NewMembers, look
from tests.support.request_log import RequestLog
from tests.support.watched import fill

ALL: list[Partition] = [("t", index) for index in range(4)]


@pytest.mark.covers("S236")
def test_members_share_by_heartbeats_alone(
    kafka: Cluster, members: NewMembers, log: RequestLog
) -> None:
    """No JoinGroup, no leader: the coordinator shares out, and each partition has one owner."""
    one, two = members("g", "t"), members("g", "t")
    owned = members.settle(one, two, partitions=4)
    assert sorted(map(len, owned.values())) == [2, 2]
    assert log.of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    assert not log.of(ApiKey.JOIN_GROUP) + log.of(ApiKey.SYNC_GROUP)


@pytest.mark.covers("S236")
@pytest.mark.parametrize(("assignor", "shares"), [("uniform", [2, 3, 3]), ("range", [2, 2, 4])])
@pytest.mark.mock_kafka(topics={"t": 4, "u": 4})
def test_the_server_has_two_assignors(
    members: NewMembers, assignor: str, shares: list[int]
) -> None:
    """range gives the first member of each topic one more, uniform counts them all together."""
    made = [members("g", "t", "u", group_remote_assignor=assignor) for _ in range(3)]
    owned = members.settle(*made, partitions=8)
    assert sorted(map(len, owned.values())) == shares


def test_who_stays_keeps_what_it_has(members: NewMembers) -> None:
    """Only what moves is revoked, and nothing is revoked from who loses nothing."""
    one = members("g", "t")
    members.settle(one, partitions=4)
    assert one.told() == [("assigned", ALL)]
    two = members("g", "t")
    owned = members.settle(one, two, partitions=4)
    assert one.told() == [("revoked", owned[two.name])]
    two.told()
    three = members("g", "t")
    after = members.settle(one, two, three, partitions=4)
    for member in (one, two):
        lost = sorted(set(owned[member.name]) - set(after[member.name]))
        assert [ps for kind, ps in member.told() if kind == "revoked"] in ([], [lost])
    assert [("assigned", after[three.name])] == three.told()


def test_every_record_is_read_once_while_members_come_and_go(
    kafka: Cluster, members: NewMembers
) -> None:
    """Commits are made in the callback that gives partitions up, at the member's own epoch."""
    values = fill(kafka, "t", 200)
    one = members("g", "t")
    one.on_revoked = lambda _: one.commit() if one.positions() else None
    members.collect(50, one)
    two = members("g", "t")
    members.settle(one, two, partitions=4)
    members.until(lambda: len(one.records) + len(two.records) >= len(values))
    assert sorted(one.values() + two.values(), key=int) == values


def test_new_partitions_are_assigned_with_the_next_heartbeat(
    members: NewMembers, admin: AdminClient
) -> None:
    one, two = members("g", "t"), members("g", "t")
    members.settle(one, two, partitions=4)
    admin.create_partitions([NewPartitions("t", 6)])["t"].result(10)
    owned = members.settle(one, two, partitions=6)
    assert sorted(map(len, owned.values())) == [3, 3]


def test_a_topic_made_later_is_assigned_when_it_comes(kafka: Cluster, members: NewMembers) -> None:
    one = members("g", "later")
    members.until(lambda: look(kafka, "g").state == "Stable")
    kafka.topic("later").create(2)
    members.settle(one, partitions=2)


def test_a_pattern_is_looked_up_by_the_coordinator(kafka: Cluster, members: NewMembers) -> None:
    """As long as the clock stands, no sooner than ten seconds after the last time."""
    for name in ("topic-1", "topic-2", "other"):
        kafka.topic(name).create(1)
    one = members("g", "^topic-.*")
    members.settle(one, partitions=2)
    assert {topic for topic, _ in one.owned} == {"topic-1", "topic-2"}
    kafka.topic("topic-3").create(1)
    kafka.clock.advance(11_000)
    members.settle(one, partitions=3)


def test_a_member_that_leaves_gives_up_at_once(kafka: Cluster, members: NewMembers) -> None:
    one, two = members("g", "t"), members("g", "t")
    members.settle(one, two, partitions=4)
    epoch = look(kafka, "g").epoch
    two.close()
    assert look(kafka, "g").epoch == epoch + 1
    members.settle(one, partitions=4)
    one.close()
    assert look(kafka, "g").state == "Empty"


def test_members_of_many_groups_do_not_mix(kafka: Cluster, members: NewMembers) -> None:
    groups = [f"g-{number}" for number in range(3)]
    made = [members(group, "t") for group in groups]
    for member in made:
        members.settle(member, partitions=4)
    assert [look(kafka, group).epoch for group in groups] == [2, 2, 2]
