"""The states of a cluster for `when`, under the names in Kafka's answers, and log end offsets.

An engine in front of a cluster in another process has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker_protocol.entities import ALL_PARTITIONS, Target

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

DEAD = "Dead"
EMPTY = "Empty"


class ClusterStates:
    """The states of a cluster in this process."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def log_ends(self, targets: Iterable[Target]) -> dict[tuple[bytes, int], int]:
        """The log end offsets of the existing partitions among `targets`, by topic id and index."""
        found: dict[tuple[bytes, int], int] = {}
        for target in targets:
            topic = self._cluster.topics.get(target.topic)
            if topic is None:
                continue
            partitions = topic.partitions
            if target.partition != ALL_PARTITIONS:
                partitions = partitions[target.partition : target.partition + 1]
            for each in partitions:
                found[topic.topic_id, each.index] = each.log_end_offset
        return found

    def all_log_ends(self) -> dict[tuple[bytes, int], int]:
        """The log end offsets of all partitions."""
        return {
            (topic.topic_id, each.index): each.log_end_offset
            for topic in self._cluster.topics.values()
            for each in topic.partitions
        }

    def group(self, group_id: str) -> str:
        """The state of a group of either protocol; "Dead" for an unknown one."""
        shard = self._cluster.group_shard(group_id)
        group = None if shard is None else shard.groups.get(group_id)
        return DEAD if group is None else group.state_name

    def transaction(self, transactional_id: str) -> str:
        """The state of a transactional id; "Empty" for an unknown one."""
        shard = self._cluster.transaction_shard(transactional_id)
        transaction = None if shard is None else shard.transactions.get(transactional_id)
        return EMPTY if transaction is None else str(transaction.state.value)

    def broker_is(self, node_id: int, state: str) -> bool:
        """Whether a broker is running, paused, stopped or fenced; False for an unknown one."""
        broker = self._cluster.processes.get(node_id)
        if broker is None:
            return False
        return broker.fenced if state == "fenced" else broker.state == state
