"""Connections that are refused or stall, and clients whose credentials run out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.server.config import ListenerSpec
from tests.clients.secured.ways import USERS, Way, librdkafka
from tests.support.faulty import RECONNECT, open_producer, send, stored, warm
from tests.support.librdkafka import TIMEOUT_S, admin_client
from tests.support.waiting import wait_until

REAUTH_MS = 1500


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One broker with a listener of each kind; sessions have to be renewed on one of them."""
    listeners = [
        ListenerSpec("PLAINTEXT"),
        ListenerSpec("TLS", security_protocol="SSL"),
        ListenerSpec(
            "LOGIN",
            security_protocol="SASL_PLAINTEXT",
            configs={"connections.max.reauth.ms": str(REAUTH_MS)},
        ),
    ]
    with Cluster(brokers=1, listeners=listeners, users=USERS) as running:
        yield running


@pytest.fixture
def topic(kafka: Cluster, group: str) -> str:
    kafka.topic(group).create()
    return group


def secured(kafka: Cluster, way: Way, **more: Any) -> dict[str, Any]:
    dotted = {name.replace("_", "."): value for name, value in RECONNECT.items()}
    return librdkafka(kafka, way) | dotted | more


def asks(config: dict[str, Any], timeout_s: float) -> None:
    """Ask for the cluster's metadata. Raises KafkaException when nobody answers."""
    Consumer(config | {"group.id": "x"}).list_topics(timeout=timeout_s)


@pytest.mark.fault("refuse_connection")
@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_broker_that_closes_every_connection(kafka: Cluster, how: str) -> None:
    """Nobody gets in as long as the rule is there."""
    rule = kafka.faults.add(
        match={"listener": "PLAINTEXT", "broker": 1}, do={"refuse_connection": how}
    )
    client = admin_client(kafka.bootstrap_servers)
    with pytest.raises(KafkaException) as raised:
        client.list_topics(timeout=0.5)
    assert raised.value.args[0].code() == KafkaError._TRANSPORT
    rule.wait()
    rule.remove()
    assert 1 in client.list_topics(timeout=TIMEOUT_S).brokers


@pytest.mark.fault("refuse_connection")
def test_only_the_first_connections_are_refused(kafka: Cluster, topic: str) -> None:
    kafka.faults.add(when={"times": 3}, do={"refuse_connection": {}})
    assert send(open_producer(kafka), topic, "x").errors == []
    assert stored(kafka, topic) == ["x"]


@pytest.mark.fault("stall_handshake")
@pytest.mark.parametrize("way", [Way("TLS"), Way("LOGIN", "PLAIN")], ids=str)
def test_a_handshake_that_does_not_get_on(kafka: Cluster, way: Way) -> None:
    """The port is open, and nothing is said; when the rule goes, the handshake does too."""
    at = "sasl" if way.mechanism else "tls"
    rule = kafka.faults.add(match={"listener": way.listener}, do={"stall_handshake": {"at": at}})
    client = Consumer(secured(kafka, way) | {"group.id": "x"})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    rule.wait()
    rule.remove()
    assert 1 in client.list_topics(timeout=TIMEOUT_S).brokers


@pytest.mark.fault("stall_handshake")
def test_a_handshake_that_takes_its_time(kafka: Cluster, topic: str) -> None:
    rule = kafka.faults.add(do={"stall_handshake": {"for": "100ms"}})
    assert send(open_producer(kafka), topic, "x").errors == []
    assert rule.hits >= 1


@pytest.mark.fault("expire_credential")
def test_a_broker_whose_certificate_has_run_out(kafka: Cluster) -> None:
    """The client sees it during the handshake, and will have none of it."""
    errors: list[KafkaError] = []
    rule = kafka.faults.add(match={"listener": "TLS"}, do={"expire_credential": "certificate"})
    client = Consumer(librdkafka(kafka, Way("TLS")) | {"group.id": "x", "error_cb": errors.append})
    client.subscribe(["nothing"])
    wait_until(lambda: client.poll(0.02) is None and bool(errors), what="the client's complaint")
    assert errors[0].code() == KafkaError._SSL
    assert "certificate verify failed" in errors[0].str()
    client.close()
    rule.remove()
    asks(secured(kafka, Way("TLS")), TIMEOUT_S)


@pytest.mark.fault("expire_credential")
def test_a_session_that_has_expired_ends_the_connection(kafka: Cluster, topic: str) -> None:
    """The next request finds the connection closed; the client logs in anew and goes on."""
    logins = kafka.faults.add(match={"api": "SaslHandshake"}, do={"observe": {}})
    producer = Producer(secured(kafka, Way("LOGIN", "PLAIN"), **{"linger.ms": 0}))
    warm(producer, topic)
    before = logins.hits
    kafka.faults.add(
        match={"api": "Produce", "topic": topic, "principal": "User:alice"},
        when={"times": 1},
        do={"expire_credential": None},
    )
    assert send(producer, topic, "x", "y").errors == []
    assert logins.hits > before
    assert stored(kafka, topic) == ["warm", "x", "y"]


@pytest.mark.fault("fail_reauthentication")
def test_a_client_that_may_not_renew_its_session(kafka: Cluster, topic: str) -> None:
    """It proved itself once; the second time it is refused, and says so."""
    errors: list[KafkaError] = []
    rule = kafka.faults.add(
        when={"times": 1}, do={"fail_reauthentication": "your account is locked"}
    )
    consumer = Consumer(
        secured(kafka, Way("LOGIN", "PLAIN")) | {"group.id": "x", "error_cb": errors.append}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    wait_until(
        lambda: consumer.poll(0.02) is None and any("locked" in e.str() for e in errors),
        what="the refusal",
    )
    assert rule.hits == 1
    consumer.close()
