"""The links between brokers, and those to clients that are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.faults.client_links import CUT_CLIENTS
from mockbroker.core.faults.rules import Match

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.faults.active import ActiveRule


class LinkView(msgspec.Struct, frozen=True, rename={"sender": "from", "receiver": "to"}):
    """The link from one broker to another, one way.

    `up` is false if it is cut, `delay_ms` the delay of each message. `rules` are the rules in force
    for requests on it, which may delay or lose some of them.
    """

    sender: int
    receiver: int
    up: bool
    delay_ms: int
    rules: list[str]


class CutClientsView(msgspec.Struct, frozen=True):
    """Clients that are cut off from brokers (null: from all), by the conditions of a rule."""

    rule: str
    brokers: list[int] | None
    match: dict[str, str | list[str]]
    both_ways: bool


class NetworkView(msgspec.Struct, frozen=True):
    """The network: the links of each ordered pair of brokers, and the clients that are cut off.

    `groups` are the brokers that reach each other, directly or through others. `controller_id` is
    -1 without a controller.
    """

    nodes: list[int]
    controller_id: int
    groups: list[list[int]]
    links: list[LinkView]
    clients: list[CutClientsView]


def network_view(cluster: Cluster) -> NetworkView:
    """The links of all brokers."""
    network = cluster.services.network
    nodes = sorted(cluster.processes)
    engine = cluster.fault_engine
    rules = [] if engine is None else list(engine.rules.values())
    hops = [rule for rule in rules if rule.scope == "hop"]
    return NetworkView(
        nodes=nodes,
        controller_id=cluster.controller_id,
        groups=[sorted(group) for group in network.groups(nodes)],
        links=[
            LinkView(
                sender=sender,
                receiver=receiver,
                up=network.is_up(sender, receiver),
                delay_ms=network.delay_ms(sender, receiver),
                rules=[rule.name for rule in hops if _travels(rule.rule.match, sender, receiver)],
            )
            for sender in nodes
            for receiver in nodes
            if sender != receiver
        ],
        clients=[_cut(rule) for rule in rules if rule.name.startswith(CUT_CLIENTS)],
    )


def _travels(match: Match, sender: int, receiver: int) -> bool:
    """Whether a rule is for hops on this link."""
    return all(
        wanted is None or here in (wanted if isinstance(wanted, list) else [wanted])
        for wanted, here in ((match.from_broker, sender), (match.to_broker, receiver))
    )


def _cut(rule: ActiveRule) -> CutClientsView:
    match = rule.rule.match
    brokers = [match.broker] if isinstance(match.broker, int) else match.broker
    given = {
        name: value
        for name in (
            "client_id",
            "client_software",
            "principal",
            "source",
            "group",
            "transactional_id",
        )
        if (value := getattr(match, name)) is not None
    }
    return CutClientsView(rule.name, brokers, given, rule.effects["cut_off"].both_ways)  # type: ignore[attr-defined]
