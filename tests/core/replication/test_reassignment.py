"""Reassignment of partitions to other brokers."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.events import Event, LeaderChanged
from mockbroker.core.replication.elections import elect_preferred_leader
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.reassignment import reassign
from mockbroker.core.replication.replication_control import Reassignment
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from tests.support.ask import ask
from tests.support.replicas import Replicas


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
    reassign(cluster.replication_control, "t", 0, target, may_change_factor=may_change_factor)
    cluster.runtime.timers.run_due(0)


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
def test_a_reassignment_of_in_sync_replicas_takes_effect_at_once_and_keeps_a_remaining_leader(
    cluster, partition, target, after
):
    epoch = cluster.image.epoch
    move(cluster, target)
    assert state(partition) == after
    assert cluster.reassignments == {}
    assert cluster.image.epoch > epoch


def test_a_reassignment_to_the_present_replicas_changes_nothing(cluster, partition):
    epoch = cluster.image.epoch
    move(cluster, [1, 2])
    assert (state(partition), cluster.image.epoch) == (([1, 2], [1, 2], 1, 0), epoch)


def test_a_move_to_a_fenced_broker_waits_for_it(cluster, partition):
    cluster.stop_broker(3)
    move(cluster, [3, 1])
    key = (partition.topic.topic_id, 0)
    assert cluster.reassignments == {key: Reassignment([3], [2])}
    assert state(partition) == ([3, 1, 2], [1, 2], 1, 0)
    cluster.start_broker(3)
    cluster.runtime.timers.run_due(0)
    assert state(partition) == ([3, 1], [1, 3], 1, 1)
    assert cluster.reassignments == {}


def test_an_ongoing_reassignment_can_be_cancelled_or_changed(cluster, partition):
    cluster.stop_broker(3)
    move(cluster, [3, 1])
    move(cluster, None)
    # A replica less, a leader epoch more.
    assert state(partition) == ([1, 2], [1, 2], 1, 1)
    move(cluster, [3, 1])
    move(cluster, [2, 1], may_change_factor=False)
    assert state(partition) == ([2, 1], [1, 2], 1, 2)
    assert cluster.reassignments == {}


def test_a_deleted_topic_has_no_reassignment(cluster, partition):
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
def test_invalid_reassignments_are_refused(cluster, partition, target, error):
    with pytest.raises(ApiError) as refused:
        move(cluster, target, may_change_factor=False)
    assert refused.value.error is error
    assert state(partition) == ([1, 2], [1, 2], 1, 0)


@pytest.mark.parametrize(("topic", "index"), [("none", 0), ("t", 9)])
def test_unknown_partitions_cannot_be_reassigned(cluster, partition, topic, index):
    with pytest.raises(ApiError) as refused:
        reassign(cluster.replication_control, topic, index, [1], may_change_factor=True)
    assert refused.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- step by step ----------------------------------------------------------------------------------


@pytest.mark.covers("S48", "S309")
def test_a_reassignment_loses_nothing_while_the_new_replica_catches_up():
    """From 1, 2 to 2, 3: the list says so meanwhile, and consumers are told where to go."""
    node = Replicas(replicas=[1, 2])
    node.sent("a")
    reassign(node.cluster.replication_control, "t", 0, [2, 3], may_change_factor=True)
    node.hold(3)
    node.sent("b")
    node.advance(60_000)
    partition = node.partition
    assert state(partition) == ([2, 3, 1], [1, 2], 1, 0)
    assert listed(node) == ([2, 3, 1], [3], [1])
    assert node.ends() == {2: 2, 3: 0, 1: 2}
    node.release(3)
    node.settle()
    assert state(partition) == ([2, 3], [2, 3], 2, 1)
    assert listed(node) is None
    assert node.contents() == {2: "a b", 3: "a b"}
    assert node.fetched(("t", 0, 0), broker=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.read(broker=2) == "a b"


def test_a_cancelled_reassignment_leaves_no_replica_behind():
    node = Replicas(replicas=[1, 2])
    node.sent("a")
    reassign(node.cluster.replication_control, "t", 0, [3], may_change_factor=True)
    node.hold(3)
    assert node.with_own_replica() == [3]
    reassign(node.cluster.replication_control, "t", 0, None, may_change_factor=True)
    node.settle()
    assert (state(node.partition), node.with_own_replica()) == (([1, 2], [1, 2], 1, 1), [])


def test_a_reassignment_cannot_be_cancelled_without_a_former_replica_in_sync():
    node = Replicas(replicas=[1])
    node.sent("a")
    reassign(node.cluster.replication_control, "t", 0, [2, 3], may_change_factor=True)
    node.hold(3)
    node.settle()
    assert state(node.partition)[:2] == ([2, 3, 1], [1, 2])
    node.cluster.stop_broker(1)
    with pytest.raises(ApiError) as refused:
        reassign(node.cluster.replication_control, "t", 0, None, may_change_factor=True)
    assert refused.value.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_uncleanly_cancelled_reassignment_returns_to_the_first_former_replica():
    """The leader was added by the move, and leads no longer (PartitionReassignmentRevert)."""
    node = Replicas(replicas=[1], unclean_leader_election_enable="true")
    node.sent("a")
    reassign(node.cluster.replication_control, "t", 0, [2, 3], may_change_factor=True)
    node.hold(3)
    node.settle()
    node.cluster.stop_broker(1)
    assert node.partition.leader_id == 2
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    reassign(node.cluster.replication_control, "t", 0, None, may_change_factor=True)
    assert state(node.partition)[:3] == ([1], [1], -1)
    assert node.partition.elr == ()
    assert [each.unclean for each in events if isinstance(each, LeaderChanged)] == [True]
    node.cluster.start_broker(1)
    assert node.partition.leader_id == 1


def test_only_one_former_replica_is_in_sync_after_an_unclean_cancellation():
    node = Replicas(4, replicas=[1, 2], unclean_leader_election_enable="true")
    node.sent("a")
    reassign(node.cluster.replication_control, "t", 0, [3, 4], may_change_factor=True)
    node.hold(4)
    node.settle()
    for node_id in (1, 2):
        node.cluster.stop_broker(node_id)
    assert node.partition.leader_id == 3
    reassign(node.cluster.replication_control, "t", 0, None, may_change_factor=True)
    assert state(node.partition)[:3] == ([1, 2], [1], -1)


def test_a_leader_that_moves_within_the_replicas_stays_leader():
    node = Replicas(replicas=[1, 2, 3])
    reassign(node.cluster.replication_control, "t", 0, [3, 1, 2], may_change_factor=True)
    assert state(node.partition) == ([3, 1, 2], [1, 2, 3], 1, 0)
    elect_preferred_leader(node.cluster.replication_control, "t", 0)
    assert node.partition.leader_id == 3


def listed(node: Replicas) -> tuple[list[int], list[int], list[int]] | None:
    """(replicas, adding, removing) of t-0 as clients are told, if it is on the move."""
    response = ask(
        node, ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(topics=None)
    )
    if not response.topics:
        return None
    (partition,) = response.topics[0].partitions
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_a_removed_replica_stays_eligible_until_enough_replicas_are_in_sync():
    """So does Kafka 4.3.1, which may leave a partition without anybody who could lead it."""
    cluster = Cluster(seed=1)
    configs = {"min.insync.replicas": "2"}
    topic = cluster.create_topic("t", assignments={0: [1, 2]}, configs=configs)
    (partition,) = topic.partitions
    cluster.stop_broker(1)
    move(cluster, [2])
    cluster.start_broker(1)
    assert (partition.replicas, partition.isr, partition.elr) == ([2], [2], (1,))
    cluster.stop_broker(2, how="unclean")
    cluster.runtime.timers.run_due(60_000)
    cluster.start_broker(2)
    cluster.runtime.timers.run_due(120_000)
    assert (partition.leader_id, partition.isr, partition.elr) == (-1, [], (1,))


def test_the_minimum_for_eligible_leaders_is_at_most_the_replica_count_of_the_first_partition():
    cluster = Cluster(seed=1)
    configs = {"min.insync.replicas": "2"}
    assignments = {0: [2, 3], 1: [1, 2]}
    partition = cluster.create_topic("t", assignments=assignments, configs=configs).partitions[1]
    move(cluster, [2])
    cluster.stop_broker(1)
    assert (partition.isr, partition.elr) == ([2], ())
