"""The links between brokers as data."""

from __future__ import annotations

from typing import Any

from mockbroker.core.actions import ACTIONS, parse_action
from mockbroker.core.cluster import Cluster
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.rules import parse_plan
from mockbroker.core.views.network import network_view


def acted(**actions: dict[str, Any]) -> Cluster:
    cluster = Cluster(now_ms=lambda: 1_000, seed=1)
    for name, arguments in actions.items():
        cluster.perform(ACTIONS[name], parse_action(name, arguments))
    return cluster


def test_each_ordered_pair_has_a_link():
    found = network_view(acted())
    assert [(link.sender, link.receiver) for link in found.links] == [
        (a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b
    ]
    assert all(link.up and not link.delay_ms for link in found.links)
    assert (found.groups, found.clients) == ([[1, 2, 3]], [])


def test_cut_and_slow_links_are_shown():
    found = network_view(
        acted(
            cut_network={"nodes": 3, "to": [1, 2], "both_ways": False},
            delay_network={"nodes": 1, "to": 2, "by": "20ms"},
        )
    )
    down = [(link.sender, link.receiver) for link in found.links if not link.up]
    assert down == [(3, 1), (3, 2)]
    slow = {(link.sender, link.receiver): link.delay_ms for link in found.links if link.delay_ms}
    assert slow == {(1, 2): 20, (2, 1): 20}


def test_rules_for_requests_on_a_link_are_named():
    cluster = acted()
    rule = {
        "name": "lossy",
        "match": {"from_broker": 1, "to_broker": [2]},
        "do": {"drop_reply": {}},
    }
    engine_of(cluster).add(parse_plan(rule, "lossy"))
    named = [(link.sender, link.receiver) for link in network_view(cluster).links if link.rules]
    assert named == [(1, 2)]


def test_clients_that_are_cut_off_are_shown():
    [cut] = network_view(
        acted(cut_network={"nodes": [2], "clients": {"client_id": "shop"}})
    ).clients
    assert (cut.brokers, cut.match, cut.both_ways) == ([2], {"client_id": "shop"}, True)
