"""Actions on the network: the links between brokers, and between clients and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.actions.brokers import find_broker
from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.events import NetworkChanged
from mockbroker.core.replication.network import links_between
from mockbroker.core.validation import Ms

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

Nodes = int | list[int]


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that match all given fields, as in a rule's `match`."""

    client_id: str | list[str] | None = None
    client_software: str | list[str] | None = None
    principal: str | list[str] | None = None
    source: str | list[str] | None = None
    group: str | list[str] | None = None
    transactional_id: str | list[str] | None = None


class CutNetwork(msgspec.Struct, frozen=True):
    """The links between some brokers and others (by default all others), or to given clients.

    Without `both_ways` only messages that `nodes` send are lost. Brokers that do not reach the
    controller are fenced after `fence_after`; without it at once, or with
    `mockbroker.failure.detection=session` after `broker.session.timeout.ms`.
    """

    SHORT: ClassVar[str] = "nodes"

    nodes: Nodes
    to: Nodes | None = None
    clients: Clients | None = None
    both_ways: bool = True
    fence_after_ms: Ms | None = msgspec.field(default=None, name="fence_after")

    def __post_init__(self) -> None:
        if self.clients is not None and self.to is not None:
            raise ValueError("clients do not go with to")


class DelayNetwork(msgspec.Struct, frozen=True):
    """The links between some brokers and others (by default all others), and the delay of each
    message; 0 removes it.
    """

    nodes: Nodes
    to: Nodes | None = None
    by_ms: Ms = msgspec.field(default=0, name="by")
    both_ways: bool = True


class HealNetwork(msgspec.Struct, frozen=True):
    """The links between some brokers and others; without `nodes` all links, also of clients."""

    SHORT: ClassVar[str] = "nodes"

    nodes: Nodes | None = None
    to: Nodes | None = None


class NetworkActions:
    """Actions on the network."""

    @action(CutNetwork)
    @staticmethod
    def cut_network(cluster: ClusterState, wanted: CutNetwork) -> None:
        """Cut links between brokers, or between clients and brokers.

        Followers on the other side lag and leave the ISR. A broker that does not reach the
        controller keeps its metadata image. Clients reach all brokers, unless `clients` are given.
        """
        if wanted.clients is not None:
            for node_id in [wanted.nodes] if isinstance(wanted.nodes, int) else wanted.nodes:
                find_broker(cluster, node_id)
            clients = msgspec.structs.asdict(wanted.clients)
            cluster.client_links.cut(wanted.nodes, clients, both_ways=wanted.both_ways)
            return
        left, right = _sides(cluster, wanted.nodes, wanted.to)
        network = cluster.replication.network
        network.cut(links_between(left, right, both_ways=wanted.both_ways))
        _emit(cluster, "cut", left, right, both_ways=wanted.both_ways)
        cluster.controller.links_changed(wanted.fence_after_ms)

    @action(DelayNetwork)
    @staticmethod
    def delay_network(cluster: ClusterState, wanted: DelayNetwork) -> None:
        """Delay the messages on the links between some brokers and others."""
        left, right = _sides(cluster, wanted.nodes, wanted.to)
        links = links_between(left, right, both_ways=wanted.both_ways)
        cluster.replication.network.delay(links, wanted.by_ms)
        _emit(cluster, "delayed", left, right, wanted.by_ms, both_ways=wanted.both_ways)
        cluster.replication.links_changed()

    @action(HealNetwork)
    @staticmethod
    def heal_network(cluster: ClusterState, wanted: HealNetwork) -> None:
        """Restore links and remove their delays; without `nodes` also those of clients."""
        if wanted.nodes is None:
            every = sorted(cluster.processes)
            cluster.controller.heal_links(every, every)
            cluster.client_links.heal()
        else:
            cluster.controller.heal_links(*_sides(cluster, wanted.nodes, wanted.to))


def _sides(cluster: ClusterState, nodes: Nodes, to: Nodes | None) -> tuple[list[int], list[int]]:
    left = sorted({nodes} if isinstance(nodes, int) else set(nodes))
    if to is None:
        right = sorted(set(cluster.processes) - set(left))
    else:
        right = sorted({to} if isinstance(to, int) else set(to))
    for node_id in (*left, *right):
        find_broker(cluster, node_id)
    if not left or not right:
        raise ActionError("there is no broker on one side of the cut")
    return left, right


def _emit(
    cluster: ClusterState,
    change: str,
    left: list[int],
    right: list[int],
    delay_ms: int = 0,
    *,
    both_ways: bool = True,
) -> None:
    now_ms = cluster.runtime.now_ms()
    cluster.runtime.emit(
        NetworkChanged(now_ms, change, tuple(left), tuple(right), delay_ms, both_ways)
    )
