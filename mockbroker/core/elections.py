"""Electing a leader because someone asked for it (ReplicationControlManager, KIP-460)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


def elect_preferred_leader(cluster: Cluster, topic: str, index: int) -> None:
    """Let the first replica lead, if it is alive and in sync. Raises ApiError when it does not."""
    partition = _find(cluster, topic, index)
    preferred = partition.replicas[0]
    if partition.leader_id == preferred:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    if cluster.brokers[preferred].fenced or preferred not in partition.isr:
        raise _error(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    change_leader(cluster, partition, preferred, partition.isr)


def elect_unclean_leader(cluster: Cluster, topic: str, index: int) -> None:
    """Let any live replica lead a leaderless partition, in sync or not. Raises ApiError."""
    partition = _find(cluster, topic, index)
    if partition.leader_id != NO_LEADER:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    alive = [n for n in partition.replicas if not cluster.brokers[n].fenced]
    if not alive:
        raise _error(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    in_sync = [node_id for node_id in alive if node_id in partition.isr]
    leader = in_sync[0] if in_sync else alive[0]
    change_leader(cluster, partition, leader, partition.isr if in_sync else [leader])


def change_leader(cluster: Cluster, partition: Partition, leader: int, isr: list[int]) -> None:
    """Put a leader in office under the next epoch, and tell the clients' metadata."""
    partition.become_leader(leader, partition.leader_epoch + 1, isr)
    cluster.metadata_changed(partition.topic)


def _find(cluster: Cluster, topic: str, index: int) -> Partition:
    if topic not in cluster.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
    partition = cluster.partition(topic, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}."
        )
    return partition


def _error(error: ErrorCode) -> ApiError:
    return ApiError(error, error.sentence)
