"""Brokers, and the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster import Cluster


class BrokerView(msgspec.Struct, frozen=True):
    """One broker. `state` is "running", "paused" or "stopped".

    `registered`: the controller has its registration. `leads`, `replicas` and `in_sync` count
    partitions. `listeners` maps names to `HOST:PORT`.
    """

    node_id: int
    rack: str | None
    state: str
    fenced: bool
    registered: bool
    controller: bool
    broker_epoch: int
    listeners: dict[str, str]
    leads: int
    replicas: int
    in_sync: int


class ClusterView(msgspec.Struct, frozen=True):
    """The whole cluster; the fields from `brokers` on are counts."""

    cluster_id: str
    controller_id: int
    now_ms: int
    brokers: int
    topics: int
    partitions: int
    under_replicated: int
    offline: int


def broker_views(cluster: Cluster) -> list[BrokerView]:
    """All brokers, by id, also those without a registration."""
    brokers = cluster.processes.values()
    counts = {broker.node_id: [0, 0, 0] for broker in brokers}
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            if partition.leader_id in counts:
                counts[partition.leader_id][0] += 1
            for node_id in partition.replicas:
                if node_id in counts:
                    counts[node_id][1] += 1
                    counts[node_id][2] += node_id in partition.isr
    return [_view(cluster, broker, counts[broker.node_id]) for broker in brokers]


def _view(cluster: Cluster, broker: Broker, counts: list[int]) -> BrokerView:
    leads, replicas, in_sync = counts
    return BrokerView(
        node_id=broker.node_id,
        rack=broker.rack,
        state=broker.state,
        fenced=broker.fenced,
        registered=broker.node_id in cluster.brokers,
        controller=cluster.controller_id == broker.node_id,
        broker_epoch=broker.epoch,
        listeners={name: f"{at.host}:{at.port}" for name, at in broker.endpoints.items()},
        leads=leads,
        replicas=replicas,
        in_sync=in_sync,
    )


def cluster_view(cluster: Cluster) -> ClusterView:
    """The controller, the time and the counts of the cluster."""
    partitions = [each for topic in cluster.topics.values() for each in topic.partitions]
    return ClusterView(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        now_ms=cluster.runtime.now_ms(),
        brokers=len(cluster.brokers),
        topics=len(cluster.topics),
        partitions=len(partitions),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in partitions),
        offline=sum(each.leader_id < 0 for each in partitions),
    )
