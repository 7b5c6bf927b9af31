"""A broker: its identity, and the parts created on first use."""

from __future__ import annotations

from mockbroker.core.brokers.broker import BrokerSpec, Endpoint
from mockbroker.core.cluster import Cluster


def test_a_broker_has_its_identity_as_static_configs():
    cluster = Cluster([BrokerSpec(4, "r1")])
    broker = cluster.brokers[4]
    broker.set_endpoint("PLAINTEXT", "h", 9092)
    broker.set_endpoint("INSIDE", "i", 9093)
    assert broker.endpoints["INSIDE"] == Endpoint("i", 9093)
    configs = broker.static_configs()
    assert configs["node.id"] == configs["broker.id"] == "4"
    assert configs["broker.rack"] == "r1"
    assert configs["listeners"] == "PLAINTEXT://h:9092,INSIDE://i:9093"
    assert "broker.rack" not in Cluster().brokers[1].static_configs()


def test_coordinator_and_fetch_sessions_are_created_once():
    broker = Cluster(configs={"max.incremental.fetch.session.cache.slots": "7"}).brokers[1]
    assert broker.groups is broker.groups
    assert broker.fetch_sessions is broker.fetch_sessions
    assert broker.fetch_sessions.slots_max == 7
