"""Elections that someone asks for."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.elections import elect_preferred_leader, elect_unclean_leader
from mockbroker.core.errors import ApiError
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker_protocol import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


@pytest.fixture
def partition(cluster: Cluster) -> Partition:
    """Replicas 1, 2, 3; 2 leads."""
    (partition,) = cluster.create_topic("t", assignments={0: [1, 2, 3]}).partitions
    partition.become_leader(2, 1, [1, 2, 3])
    return partition


@pytest.mark.covers("S308", "S49")
def test_the_preferred_leader_comes_back_under_the_next_epoch(cluster, partition):
    epoch = cluster.metadata_epoch
    elect_preferred_leader(cluster, "t", 0)
    assert (partition.leader_id, partition.leader_epoch, partition.isr) == (1, 2, [1, 2, 3])
    assert cluster.metadata_epoch > epoch
    with pytest.raises(ApiError) as refused:
        elect_preferred_leader(cluster, "t", 0)
    assert refused.value.error is ErrorCode.ELECTION_NOT_NEEDED


@pytest.mark.parametrize("how", ["fenced", "out of sync"])
def test_a_preferred_leader_must_be_alive_and_in_sync(cluster, partition, how):
    if how == "fenced":
        cluster.brokers[1].fenced = True
    else:
        partition.set_isr([2, 3])
    with pytest.raises(ApiError) as refused:
        elect_preferred_leader(cluster, "t", 0)
    assert refused.value.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert partition.leader_id == 2


def test_an_unclean_election_is_for_leaderless_partitions(cluster, partition):
    with pytest.raises(ApiError) as refused:
        elect_unclean_leader(cluster, "t", 0)
    assert refused.value.error is ErrorCode.ELECTION_NOT_NEEDED


@pytest.mark.parametrize(
    ("isr", "fenced", "leader", "isr_after"),
    [([3], (), 3, [3]), ([3], (3,), 1, [1]), ([], (1,), 2, [2])],
)
def test_an_unclean_election_prefers_who_is_in_sync(
    cluster, partition, isr, fenced, leader, isr_after
):
    for node_id in fenced:
        cluster.brokers[node_id].fenced = True
    partition.become_leader(NO_LEADER, 2, isr)
    elect_unclean_leader(cluster, "t", 0)
    assert (partition.leader_id, partition.leader_epoch, partition.isr) == (leader, 3, isr_after)


def test_without_a_live_replica_nobody_can_lead(cluster, partition):
    for broker in cluster.brokers.values():
        broker.fenced = True
    partition.become_leader(NO_LEADER, 2, [])
    with pytest.raises(ApiError) as refused:
        elect_unclean_leader(cluster, "t", 0)
    assert refused.value.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


@pytest.mark.parametrize(("topic", "index"), [("none", 0), ("t", 9)])
def test_unknown_partitions_have_no_elections(cluster, partition, topic, index):
    for elect in (elect_preferred_leader, elect_unclean_leader):
        with pytest.raises(ApiError) as refused:
            elect(cluster, topic, index)
        assert refused.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
