"""AlterPartition: a leader asks the controller for another ISR.

The controller alone changes the ISR. It refuses a leader that is none any more, a request made from
an older state of the partition, and members that are fenced or about to leave (KIP-497, KIP-841).

Source: ReplicationControlManager.alterPartition, validateAlterPartitionData.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.replication.elections import PartitionChange
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import PartitionKey


class AlterPartition(NamedTuple):
    """The ISR that leader `node_id` wants, and the state of the partition that it knows."""

    node_id: int
    key: PartitionKey
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    reason: str


def alter_partition(cluster: Cluster, request: AlterPartition) -> ErrorCode:
    """Carry a leader's request out, as the controller; the error that it gets back."""
    partition = cluster.image.partition_by_id(*request.key)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if request.leader_epoch != partition.leader_epoch:
        behind = request.leader_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if behind else ErrorCode.NOT_CONTROLLER
    if partition.leader_id != request.node_id:
        return ErrorCode.INVALID_REQUEST
    if request.partition_epoch != partition.partition_epoch:
        behind = request.partition_epoch < partition.partition_epoch
        return ErrorCode.INVALID_UPDATE_VERSION if behind else ErrorCode.NOT_CONTROLLER
    if not set(request.isr) <= set(partition.replicas) or request.node_id not in request.isr:
        return ErrorCode.INVALID_REQUEST
    if not all(cluster.image.is_active(node_id) for node_id in request.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    change = PartitionChange(cluster, partition)
    change.isr = request.isr
    change.apply(request.reason)
    return ErrorCode.NONE
