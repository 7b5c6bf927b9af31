"""Heartbeats of brokers, which exist while a rule may touch them."""

from __future__ import annotations

from tests.support.hops import add_hop_rule
from tests.support.replicas import Replicas


def test_each_heartbeat_that_arrives_begins_the_session_anew() -> None:
    """Heartbeats that are under way for longer than their interval fence nobody meanwhile."""
    node = Replicas()
    add_hop_rule(node.cluster, {"delay": 3_000}, api="BrokerHeartbeat", from_broker=1)
    node.advance(60_000)
    assert (node.isr_changes(), node.elections()) == ([], [])
    assert node.leadership() == (1, 0, [1, 2, 3])
