"""Who gets which partitions and records: queue, publish/subscribe, fair spread, crowds."""

from __future__ import annotations

from random import Random

import pytest

from mockbroker import Cluster
from tests.support.members import Member, Members, Partition, look
from tests.support.watched import fill


@pytest.mark.covers("S186")
def test_a_group_is_a_queue(kafka: Cluster, members: Members) -> None:
    """Four consumers of one group share 1,000 records; none is given to two of them."""
    group = [members("g", "t") for _ in range(4)]
    members.settle(*group, partitions=4)
    values = fill(kafka, "t", 1_000)
    members.collect(1_000)
    assert sorted(value for member in group for value in member.values()) == sorted(values)
    assert all(len(member.records) == 250 for member in group)


@pytest.mark.covers("S187")
def test_groups_of_their_own_all_get_everything(kafka: Cluster, members: Members) -> None:
    """Three groups: each receives all 1,000 records."""
    values = fill(kafka, "t", 1_000)
    subscribers = [members(f"g{n}", "t") for n in range(3)]
    members.collect(3_000)
    for member in subscribers:
        assert sorted(member.values()) == sorted(values)


@pytest.mark.covers("S188")
@pytest.mark.mock_kafka(brokers=2)
def test_groups_of_different_size_on_one_topic(kafka: Cluster, members: Members) -> None:
    """Four partitions on two brokers: two members get two each, four get one, a fifth gets none."""
    leaders = kafka.call(lambda cluster: [p.leader_id for p in cluster.topics["t"].partitions])
    assert sorted(leaders) == [1, 1, 2, 2]
    pair = members.settle(*(members("a", "t") for _ in range(2)), partitions=4)
    assert sorted(map(len, pair.values())) == [2, 2]
    four = [members("b", "t") for _ in range(4)]
    assert sorted(map(len, members.settle(*four, partitions=4).values())) == [1, 1, 1, 1]
    five = members.settle(*four, members("b", "t"), partitions=4)
    assert sorted(map(len, five.values())) == [0, 1, 1, 1, 1]


@pytest.mark.covers("S237")
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize(("count", "partitions"), [(2, 5), (3, 7), (5, 3)])
@pytest.mark.mock_kafka(topics={})
def test_the_spread_is_fair(
    kafka: Cluster, members: Members, assignor: str, count: int, partitions: int
) -> None:
    """m members of one topic of p partitions own p // m or one more each."""
    kafka.topic("even").create(partitions)
    group = [members("g", "even", partition_assignment_strategy=assignor) for _ in range(count)]
    owned = members.settle(*group, partitions=partitions)
    least = partitions // count
    assert {len(each) for each in owned.values()} <= {least, least + 1}


@pytest.mark.covers("S189")
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("seed", [1])
@pytest.mark.mock_kafka(topics={"t": 7})
def test_no_partition_has_two_owners_while_members_come_and_go(
    kafka: Cluster, members: Members, assignor: str, seed: int
) -> None:
    """Whoever is told of a partition is told after its last owner has given it up."""
    draw = Random(seed)
    owners: dict[Partition, str] = {}

    def newcomer() -> Member:
        member = members("g", "t", partition_assignment_strategy=assignor)

        def take(partitions: list[object]) -> None:
            for each in member.events[-1].partitions:
                assert owners.setdefault(each, member.name) == member.name, (each, owners)

        def give(partitions: list[object]) -> None:
            for each in member.events[-1].partitions:
                assert owners.pop(each) == member.name

        member.on_assigned, member.on_revoked = take, give
        return member

    group = [newcomer()]
    generation = 0
    for _ in range(4):
        if len(group) == 1 or draw.random() < 0.6:
            group.append(newcomer())
        else:
            group.pop(draw.randrange(len(group))).close()
        members.settle(*group, partitions=7)
        assert look(kafka, "g").generation > generation
        generation = look(kafka, "g").generation
        assert len(owners) == 7


def test_two_consumers_that_join_at_once(kafka: Cluster, members: Members) -> None:
    """They end up in one generation with two partitions each, however their requests interleave."""
    pair = [members("g", "t") for _ in range(2)]
    owned = members.settle(*pair, partitions=4)
    assert sorted(map(len, owned.values())) == [2, 2]


@pytest.mark.mock_kafka(topics={"crowded": 60})
def test_fifty_members_join_at_once(kafka: Cluster, members: Members) -> None:
    """They settle in a handful of generations, each with one or two of sixty partitions."""
    crowd = [members("crowd", "crowded", heartbeat_interval_ms=100) for _ in range(50)]
    owned = members.settle(*crowd, partitions=60)
    assert sorted(map(len, owned.values())) == [1] * 40 + [2] * 10
    assert look(kafka, "crowd").generation <= 25
