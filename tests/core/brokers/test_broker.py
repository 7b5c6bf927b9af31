"""A broker: its identity, and the parts created on first use."""

from __future__ import annotations

from mockbroker.core.brokers.broker import BrokerSpec, Endpoint
from mockbroker.core.cluster import Cluster
from mockbroker.handlers.base import ConnectionInfo


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


def test_the_members_of_a_connection_are_gone_with_it():
    """Each consumer has a member id and a connection of its own; a cluster sees many of them."""
    cluster = Cluster()
    for number in range(100):
        connection = ConnectionInfo(number, "127.0.0.1", 50_000)
        cluster.member_connections.record("g", f"m{number}", connection)
        cluster.brokers[1].connection_closed(connection)
    assert len(cluster.member_connections) == 0
