"""What a group or a transaction is in just now, by the names that clients are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster

DEAD = "Dead"
EMPTY = "Empty"


def coordinator(cluster: Cluster, key: str, topic: str) -> Broker | None:
    """The broker that coordinates a group or a transactional id, if there is one."""
    partition = cluster.partition(topic, cluster.find_coordinator_partition(key, topic))
    return None if partition is None else cluster.brokers.get(partition.leader_id)


def group_state(cluster: Cluster, group_id: str) -> str:
    """The state of a group of either protocol; "Dead" for one that is not there."""
    broker = coordinator(cluster, group_id, GROUP_METADATA_TOPIC)
    shard = None if broker is None else broker.groups.shard_of(group_id)
    if shard is None or isinstance(shard, ErrorCode):
        return DEAD
    group = shard.groups.get(group_id)
    if group is not None:
        return str(group.state.value)
    consumer = shard.consumers.groups.get(group_id)
    return DEAD if consumer is None else str(consumer.state.value)


def transaction_state(cluster: Cluster, transactional_id: str) -> str:
    """The state of a transactional id; "Empty" for one that is not there."""
    broker = coordinator(cluster, transactional_id, TRANSACTION_STATE_TOPIC)
    shard = None if broker is None else broker.transactions.shard_of(transactional_id)
    if shard is None or isinstance(shard, ErrorCode):
        return EMPTY
    transaction = shard.transactions.get(transactional_id)
    return EMPTY if transaction is None else str(transaction.state.value)
