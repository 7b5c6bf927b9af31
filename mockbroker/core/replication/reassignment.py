"""Reassignment of a partition's replicas (KIP-455).

A reassignment adds the new replicas to the list, waits until all target replicas are in sync, and
then removes the old ones. A new order alone takes effect at once. `elections` ends a reassignment
with the change of the ISR that completes it.

Source: ReplicationControlManager.alterPartitionReassignment, PartitionReassignmentRevert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.elections import Election, PartitionChange
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replication_control import NOT_REASSIGNED
from mockbroker.core.replication.topic_plans import check_replicas
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.replication_control import ReplicationControl


def reassign(
    control: ReplicationControl,
    topic: str,
    index: int,
    target: Sequence[int] | None,
    *,
    may_change_factor: bool,
) -> None:
    """Begin to move a partition to `target`, or cancel the reassignment (None). Raises ApiError."""
    plan_reassignment(control, topic, index, target, may_change_factor=may_change_factor)()


def plan_reassignment(
    control: ReplicationControl,
    topic: str,
    index: int,
    target: Sequence[int] | None,
    *,
    may_change_factor: bool,
) -> Callable[[], object]:
    """Check and prepare a reassignment; the result carries it out.

    Raises ApiError.
    """
    partition = _find_partition(control, topic, index)
    if target is None:
        return _plan_cancel(control, partition)
    check_replicas(control, target, None)
    present = _settled_replicas(control, partition)
    if not may_change_factor and len(target) != len(present):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(present)} to {len(target)}",
        )
    change = PartitionChange(control, partition)
    adding = sorted(set(target) - set(partition.replicas))
    removing = sorted(set(partition.replicas) - set(target))
    change.replicas = [*target, *removing]
    change.adding = adding or change.adding
    change.removing = removing or change.removing
    return partial(change.apply, "reassignment")


def _plan_cancel(control: ReplicationControl, partition: Partition) -> Callable[[], object]:
    """Revert to the former replicas. If none of these is in sync, the first becomes the ISR. That
    loses records, and requires `unclean.leader.election.enable` (PartitionReassignmentRevert).
    """
    ongoing = control.reassignment_of(partition)
    if ongoing == NOT_REASSIGNED:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    change = PartitionChange(control, partition)
    change.replicas = _settled_replicas(control, partition)
    change.isr = [node_id for node_id in partition.isr if node_id in change.replicas]
    change.adding, change.removing = [], []
    if partition.topic.configs.unclean_leader_election_enable:
        change.election = Election.UNCLEAN
        if not change.isr:
            change.isr, change.reverts_uncleanly = change.replicas[:1], True
    elif not change.isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unable to revert partition assignment for "
            f"{partition.topic.name}:{partition.index} because it would require an unclean leader "
            "election.",
        )
    return partial(change.apply, "reassignment cancelled")


def _find_partition(control: ReplicationControl, topic: str, index: int) -> Partition:
    if topic not in control.image.topics:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
        )
    partition = control.metadata.partition(topic, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}."
        )
    return partition


def _settled_replicas(control: ReplicationControl, partition: Partition) -> list[int]:
    """The replicas without those that a reassignment is still adding."""
    adding = control.reassignment_of(partition).adding
    return [node_id for node_id in partition.replicas if node_id not in adding]
