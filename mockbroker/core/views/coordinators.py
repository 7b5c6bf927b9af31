"""The coordinator of a group or of a transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class CoordinatorView(msgspec.Struct, frozen=True):
    """The coordinator of `key`: the leader of a `partition` of the internal `topic`.

    The partition is the key's `hash` (String.hashCode) modulo the number of `partitions`. The
    coordinator is -1 if the partition has no leader, or before the topic exists.
    """

    key: str
    topic: str
    hash: int
    partitions: int
    partition: int
    coordinator: int


def group_coordinator_view(cluster: Cluster, group: str) -> CoordinatorView:
    """The coordinator of a group id; the group need not exist."""
    return _view(cluster, group, GROUP_METADATA_TOPIC, "offsets.topic.num.partitions")


def transaction_coordinator_view(cluster: Cluster, transactional_id: str) -> CoordinatorView:
    """The coordinator of a transactional id, which need not exist."""
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
