"""Moving partitions to other brokers."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.elections import Reassignment
from mockbroker.core.errors import ApiError
from mockbroker.core.partition import Partition
from mockbroker.core.reassignment import reassign
from mockbroker_protocol import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


@pytest.fixture
def partition(cluster: Cluster) -> Partition:
    """Replicas 1 and 2; 1 leads."""
    (partition,) = cluster.create_topic("t", assignments={0: [1, 2]}).partitions
    return partition


def move(cluster: Cluster, target: list[int] | None, *, may_change_factor: bool = True) -> None:
    """Ask for a move, and let followers catch up."""
    reassign(cluster, "t", 0, target, may_change_factor=may_change_factor)
    cluster.timers.run_due(0)


def state(partition: Partition) -> tuple[list[int], list[int], int, int]:
    return partition.replicas, partition.isr, partition.leader_id, partition.leader_epoch


@pytest.mark.covers("S48", "S309")
@pytest.mark.parametrize(
    ("target", "after"),
    [
        ([2, 3], ([2, 3], [2, 3], 2, 1)),
        ([3, 2, 1], ([3, 2, 1], [1, 2, 3], 1, 0)),
        ([2, 1], ([2, 1], [1, 2], 1, 0)),
        ([2], ([2], [2], 2, 1)),
        ([3], ([3], [3], 3, 1)),
    ],
)
def test_a_move_is_done_at_once_and_the_leader_changes_only_if_it_leaves(
    cluster, partition, target, after
):
    epoch = cluster.metadata_epoch
    move(cluster, target)
    assert state(partition) == after
    assert cluster.reassignments == {}
    assert cluster.metadata_epoch > epoch


def test_a_move_to_where_it_is_changes_nothing(cluster, partition):
    epoch = cluster.metadata_epoch
    move(cluster, [1, 2])
    assert (state(partition), cluster.metadata_epoch) == (([1, 2], [1, 2], 1, 0), epoch)


def test_a_move_to_a_fenced_broker_waits_for_it(cluster, partition):
    cluster.stop_broker(3)
    move(cluster, [3, 1])
    key = (partition.topic.topic_id, 0)
    assert cluster.reassignments == {key: Reassignment([3], [2])}
    assert state(partition) == ([3, 1, 2], [1, 2], 1, 0)
    cluster.start_broker(3)
    cluster.timers.run_due(0)
    assert state(partition) == ([3, 1], [1, 3], 1, 1)
    assert cluster.reassignments == {}


def test_a_move_under_way_can_be_called_off_or_changed(cluster, partition):
    cluster.stop_broker(3)
    move(cluster, [3, 1])
    move(cluster, None)
    # A replica less, a leader epoch more.
    assert state(partition) == ([1, 2], [1, 2], 1, 1)
    move(cluster, [3, 1])
    move(cluster, [2, 1], may_change_factor=False)
    assert state(partition) == ([2, 1], [1, 2], 1, 2)
    assert cluster.reassignments == {}


def test_a_deleted_topic_is_not_moved_any_more(cluster, partition):
    cluster.stop_broker(3)
    move(cluster, [3, 1])
    cluster.delete_topic("t")
    assert cluster.reassignments == {}


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2, 3], ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_moves_that_are_refused(cluster, partition, target, error):
    with pytest.raises(ApiError) as refused:
        move(cluster, target, may_change_factor=False)
    assert refused.value.error is error
    assert state(partition) == ([1, 2], [1, 2], 1, 0)


@pytest.mark.parametrize(("topic", "index"), [("none", 0), ("t", 9)])
def test_unknown_partitions_do_not_move(cluster, partition, topic, index):
    with pytest.raises(ApiError) as refused:
        reassign(cluster, topic, index, [1], may_change_factor=True)
    assert refused.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
