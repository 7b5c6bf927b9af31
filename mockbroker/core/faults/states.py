"""The states of a cluster for `when`, under the names that clients see, and log end offsets.

An engine in front of a cluster in another process has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.entities import ALL_PARTITIONS, Target

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster_state import ClusterState

DEAD = "Dead"
EMPTY = "Empty"


def coordinator(cluster: ClusterState, key: str, topic: str) -> Broker | None:
    """The coordinator of a group or a transactional id, if there is one."""
    partition = cluster.partition(topic, cluster.find_coordinator_partition(key, topic))
    return None if partition is None else cluster.brokers.get(partition.leader_id)


def group_state(cluster: ClusterState, group_id: str) -> str:
    """The state of a group of any type; "Dead" for an unknown one."""
    broker = coordinator(cluster, group_id, GROUP_METADATA_TOPIC)
    shard = None if broker is None else broker.groups.shard_of(group_id)
    if shard is None or isinstance(shard, ErrorCode):
        return DEAD
    group = shard.groups.get(group_id)
    return DEAD if group is None else group.state_name


def transaction_state(cluster: ClusterState, transactional_id: str) -> str:
    """The state of a transactional id; "Empty" for an unknown one."""
    broker = coordinator(cluster, transactional_id, TRANSACTION_STATE_TOPIC)
    shard = None if broker is None else broker.transactions.shard_of(transactional_id)
    if shard is None or isinstance(shard, ErrorCode):
        return EMPTY
    transaction = shard.transactions.get(transactional_id)
    return EMPTY if transaction is None else str(transaction.state.value)


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
        return group_state(self._cluster, group_id)

    def transaction(self, transactional_id: str) -> str:
        """The state of a transactional id; "Empty" for an unknown one."""
        return transaction_state(self._cluster, transactional_id)

    def broker_is(self, node_id: int, state: str) -> bool:
        """Whether a broker is running, paused, stopped or fenced; False for an unknown one."""
        broker = self._cluster.processes.get(node_id)
        if broker is None:
            return False
        return broker.fenced if state == "fenced" else broker.state == state
