"""The preferred read replica of a consumer (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.replication.partition import Partition

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_PREFERENCE = -1


def is_rack_aware(cluster: Cluster) -> bool:
    """Whether consumers with a rack may be sent to a follower."""
    return bool(cluster.config("replica.selector.class") == RACK_AWARE)


def preferred_replica(
    cluster: Cluster, partition: Partition, rack_id: str, fetch_offset: int
) -> int:
    """The node id of the follower to fetch from, or -1 for the leader.

    For requests to the leader only. With any `replica.selector.class` but Kafka's rack-aware one
    consumers stay at the leader, as with Kafka's LeaderSelector. Candidates are the replicas of the
    ISR in the consumer's rack that have the offset; the leader wins if it is among them, then the
    one with the furthest log end, then the highest node id (ReplicaView.comparator).
    """
    if not rack_id or not is_rack_aware(cluster):
        return NO_PREFERENCE
    image = cluster.metadata.image_of(partition.leader_id)
    best = (-1, NO_PREFERENCE)
    for node_id in partition.isr:
        broker = image.brokers.get(node_id)
        if broker is None or broker.fenced or broker.rack != rack_id:
            continue
        if node_id == partition.leader_id:
            return NO_PREFERENCE
        state = partition.followers.get(node_id)
        log = partition.log
        start = log.start_offset if state is None else state.fetched_log_start
        end = log.end_offset if state is None else state.fetched_offset
        if start <= fetch_offset <= end:
            best = max(best, (end, node_id))
    return best[1]
