"""Moving a partition to other brokers (KIP-455).

A reassignment adds the new replicas, waits until all of them are in sync, and then removes the old
ones. As long as followers catch up at once, all of that happens in one go; it waits where a new
replica's broker is fenced. Whoever lets such a replica come in sync calls `advance` afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.elections import change_leader
from mockbroker.core.errors import ApiError
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication_control import check_replicas
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class Reassignment(NamedTuple):
    """Replicas on their way in and out of a partition's list of replicas."""

    adding: list[int]
    removing: list[int]


def reassign(
    cluster: Cluster,
    topic: str,
    index: int,
    target: Sequence[int] | None,
    *,
    may_change_factor: bool,
) -> None:
    """Start to move a partition to `target`, or with None call the move off. Raises ApiError."""
    if topic not in cluster.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
    partition = cluster.partition(topic, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}."
        )
    if target is None:
        _call_off(cluster, partition)
        return
    check_replicas(cluster, target, None)
    present = _settled_replicas(cluster, partition)
    if not may_change_factor and len(target) != len(present):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{len(present)} replicas may not become {len(target)}.",
        )
    adding = [node_id for node_id in target if node_id not in present]
    removing = [node_id for node_id in present if node_id not in target]
    partition.replicas = [*target, *removing]
    cluster.reassignments[_key(partition)] = Reassignment(adding, removing)
    came_in = [n for n in adding if n not in partition.isr and not cluster.brokers[n].fenced]
    if came_in:
        partition.set_isr(sorted((*partition.isr, *came_in)))
    advance(cluster, partition)
    cluster.metadata_changed(partition.topic)


def advance(cluster: Cluster, partition: Partition) -> None:
    """Finish the partition's reassignment, if it has one and its new replicas are in sync."""
    ongoing = cluster.reassignments.get(_key(partition))
    if ongoing is None:
        return
    staying = [node_id for node_id in partition.isr if node_id not in ongoing.removing]
    if not staying or any(node_id not in staying for node_id in ongoing.adding):
        return
    del cluster.reassignments[_key(partition)]
    _settle(cluster, partition, ongoing.removing, staying)


def _call_off(cluster: Cluster, partition: Partition) -> None:
    ongoing = cluster.reassignments.pop(_key(partition), None)
    if ongoing is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    staying = [node_id for node_id in partition.isr if node_id not in ongoing.adding]
    _settle(cluster, partition, ongoing.adding, staying)


def _settle(cluster: Cluster, partition: Partition, leaving: list[int], isr: list[int]) -> None:
    """Take `leaving` off the partition; the leader changes only when it is among them."""
    partition.replicas = [node_id for node_id in partition.replicas if node_id not in leaving]
    for node_id in leaving:
        partition.own_replicas.pop(node_id, None)
    if partition.leader_id in partition.replicas or partition.leader_id == NO_LEADER:
        if isr != partition.isr:
            partition.set_isr(isr)
        cluster.metadata_changed(partition.topic)
    else:
        leader = next((n for n in partition.replicas if n in isr), NO_LEADER)
        change_leader(cluster, partition, leader, isr)


def _settled_replicas(cluster: Cluster, partition: Partition) -> list[int]:
    """The replicas without those that a reassignment under way was still adding."""
    ongoing = cluster.reassignments.get(_key(partition))
    adding = [] if ongoing is None else ongoing.adding
    return [node_id for node_id in partition.replicas if node_id not in adding]


def _key(partition: Partition) -> tuple[bytes, int]:
    return partition.topic.topic_id, partition.index
