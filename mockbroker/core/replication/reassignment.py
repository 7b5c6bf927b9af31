"""Moving a partition to other brokers (KIP-455).

A reassignment adds the new replicas to the list, waits until all that shall stay are in sync, and
then removes the old ones. What only reorders replicas is done at once. `elections` ends a
reassignment with the change of the ISR that makes it complete.

Source: ReplicationControlManager.alterPartitionReassignment, PartitionReassignmentRevert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.control import check_replicas
from mockbroker.core.replication.elections import Election, PartitionChange
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replication_control import NOT_REASSIGNED
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
    """Start to move a partition to `target`, or with None call the move off. Raises ApiError."""
    plan_reassignment(control, topic, index, target, may_change_factor=may_change_factor)()


def plan_reassignment(
    control: ReplicationControl,
    topic: str,
    index: int,
    target: Sequence[int] | None,
    *,
    may_change_factor: bool,
) -> Callable[[], object]:
    """What `reassign` would do now, to be called when everything else is planned.

    Raises ApiError.
    """
    partition = _find_partition(control, topic, index)
    if target is None:
        return _plan_call_off(control, partition)
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


def _plan_call_off(control: ReplicationControl, partition: Partition) -> Callable[[], object]:
    """Go back to the replicas of before, unless no leader would be left among them."""
    ongoing = control.reassignment_of(partition)
    if ongoing == NOT_REASSIGNED:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    change = PartitionChange(control, partition)
    change.replicas = _settled_replicas(control, partition)
    change.isr = [node_id for node_id in partition.isr if node_id in change.replicas]
    change.adding, change.removing = [], []
    if partition.topic.configs.unclean_leader_election_enable:
        change.election = Election.UNCLEAN
    elif not change.isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unable to revert partition assignment for "
            f"{partition.topic.name}:{partition.index} because it would require an unclean leader "
            "election.",
        )
    return partial(change.apply, "reassignment called off")


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
    """The replicas without those that a reassignment under way was still adding."""
    adding = control.reassignment_of(partition).adding
    return [node_id for node_id in partition.replicas if node_id not in adding]
