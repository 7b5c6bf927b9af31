"""Keeping the copies of partitions: which followers share the leader's log, and which lag behind.

For now every live replica is caught up at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition


class Replication:
    """The replicas of one cluster."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def replace_replicas(self, partition: Partition, replicas: list[int]) -> None:
        """Let other brokers hold the partition: newcomers start empty, leavers lose their copy."""
        for node_id in partition.replicas:
            if node_id not in replicas:
                partition.own_replicas.pop(node_id, None)
                broker = self._cluster.brokers.get(node_id)
                if broker is not None:
                    broker.log_dirs.forget(partition)
        partition.replicas = replicas

    def assignment_changed(self, partition: Partition) -> None:
        """The leader, the ISR or the replicas changed: start and stop followers as needed."""
        cluster = self._cluster
        if len(partition.isr) < len(partition.replicas):
            cluster.timers.call_at(cluster.now_ms(), lambda: self._catch_up(partition))

    def _catch_up(self, partition: Partition) -> None:
        from mockbroker.core.elections import PartitionChange

        for node_id in partition.replicas:
            if node_id in partition.isr or partition.leader_id < 0:
                continue
            broker = self._cluster.brokers.get(node_id)
            if partition.deleted:
                return
            if broker is not None and broker.active and node_id not in partition.own_replicas:
                change = PartitionChange(self._cluster, partition)
                change.isr.append(node_id)
                change.apply("caught up")
                return

    def broker_changed(self, node_id: int) -> None:
        """A broker came or went: the same for every partition that it holds."""
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                if node_id in partition.replicas:
                    self.assignment_changed(partition)
