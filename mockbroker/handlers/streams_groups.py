"""Whether the two APIs of streams groups are enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.group import STREAMS

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

FEATURE = "streams.version"


def streams_enabled(cluster: Cluster) -> bool:
    """Whether streams groups are in `group.coordinator.rebalance.protocols`, and their feature is
    on (KafkaApis.isStreamsGroupProtocolEnabled).
    """
    protocols = cluster.config("group.coordinator.rebalance.protocols")
    assert isinstance(protocols, tuple)
    return STREAMS in protocols and cluster.features.level(FEATURE) > 0
