"""confluent-kafka (librdkafka) on secured listeners."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from mockbroker import Cluster
from tests.clients.secured.ways import (
    PASSWORD,
    USER,
    Way,
    by_password,
    every_way,
    librdkafka,
    principals,
    secured_cluster,
)

TIMEOUT_S = 20.0
VALUES = {f"value {n}".encode() for n in range(20)}


def read(config: dict[str, object], topic: str, count: int) -> set[bytes]:
    """The values of so many records, read by a group."""
    group = {"group.id": f"g-{topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **group})
    values: set[bytes] = set()
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + TIMEOUT_S
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.add(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return values


@every_way
def test_records_go_there_and_back(kafka: Cluster, topic: str, way: Way) -> None:
    config = librdkafka(kafka, way)
    producer = Producer(config)
    producer.poll(0)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(TIMEOUT_S) == 0
    assert principals(kafka, way) == {way.principal}
    assert read(config, topic, len(VALUES)) == VALUES


def first_error(config: dict[str, object]) -> KafkaError:
    """The first thing that a client complains about."""
    errors: list[KafkaError] = []
    producer = Producer({**config, "error_cb": errors.append})
    deadline = time.monotonic() + TIMEOUT_S
    while not errors and time.monotonic() < deadline:
        producer.poll(0.1)
    producer.purge()
    return errors[0]


@pytest.mark.covers("S290")
@by_password
def test_a_wrong_password_is_an_authentication_error(kafka: Cluster, way: Way) -> None:
    error = first_error(librdkafka(kafka, way, "wrong"))
    assert error.code() == KafkaError._AUTHENTICATION
    assert "Authentication failed" in error.str()


def test_a_token_of_nobody_is_an_authentication_error(kafka: Cluster) -> None:
    config = librdkafka(kafka, Way("LOGIN", "OAUTHBEARER"))
    config["oauth_cb"] = lambda _: (kafka.token(USER, algorithm="none"), 2e9)
    error = first_error(config)
    assert error.code() == KafkaError._AUTHENTICATION
    assert "invalid_token" in error.str()


def test_a_client_that_does_not_trust_the_authority_says_so(kafka: Cluster) -> None:
    config = librdkafka(kafka, Way("TLS"))
    del config["ssl.ca.location"]
    error = first_error(config)
    # How soon librdkafka hears of it decides whom it blames: TLS, the connection or all brokers.
    blamed = (KafkaError._SSL, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    assert error.code() in blamed
    assert "certificate verify failed" in error.str()


def test_a_plaintext_client_on_a_tls_listener_finds_no_broker(kafka: Cluster) -> None:
    error = first_error({**librdkafka(kafka, Way("TLS")), "security.protocol": "PLAINTEXT"})
    assert error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sessions_are_renewed_in_the_midst_of_producing(mechanism: str) -> None:
    """librdkafka proves itself again once most of the session's time is over (KIP-368)."""
    way = Way("LOGIN", mechanism)
    with secured_cluster(configs={"connections.max.reauth.ms": 1200}) as kafka:
        kafka.topic("t").create()
        producer = Producer(librdkafka(kafka, way, PASSWORD))
        handshakes = 17

        def renewed() -> int:
            return kafka.server.stats.requests.get(handshakes, 0)

        sent, failed = 0, []
        deadline = time.monotonic() + TIMEOUT_S
        until = None
        while time.monotonic() < deadline and (until is None or renewed() < until):
            producer.produce("t", b"x", on_delivery=lambda e, _: failed.append(e) if e else None)
            sent += 1
            producer.flush(TIMEOUT_S)
            until = until or renewed() + 3
        assert until is not None
        assert renewed() >= until
        assert failed == []
        assert len(kafka.records("t")) == sent
