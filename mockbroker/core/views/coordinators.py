"""Who coordinates a group or a transactional id, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class CoordinatorView(msgspec.Struct, frozen=True):
    """Where `key` is kept: its `hash` (Java's of the text) modulo the number of `partitions` of the
    internal `topic` is the partition, and who leads that is the coordinator.

    The coordinator is -1 while nobody leads it, and before the topic exists.
    """

    key: str
    topic: str
    hash: int
    partitions: int
    partition: int
    coordinator: int


def group_coordinator_view(cluster: Cluster, group: str) -> CoordinatorView:
    """Of any group id, whether there is such a group or not."""
    return _view(cluster, group, GROUP_METADATA_TOPIC, "offsets.topic.num.partitions")


def transaction_coordinator_view(cluster: Cluster, transactional_id: str) -> CoordinatorView:
    """Of any transactional id, whether it was used or not."""
    count = "transaction.state.log.num.partitions"
    return _view(cluster, transactional_id, TRANSACTION_STATE_TOPIC, count)


def _view(cluster: Cluster, key: str, name: str, count: str) -> CoordinatorView:
    topic = cluster.topics.get(name)
    index = cluster.find_coordinator_partition(key, name)
    return CoordinatorView(
        key=key,
        topic=name,
        hash=string_hash(key),
        partitions=cluster.config_int(count) if topic is None else len(topic.partitions),
        partition=index,
        coordinator=-1 if topic is None else topic.partitions[index].leader_id,
    )
