"""confluent-kafka's clients with little patience, for tests in which brokers misbehave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer

from mockbroker import Cluster
from tests.support.librdkafka import Delivery, flush, open_consumer, settings
from tests.support.waiting import wait_until

# What a request that is never answered costs a test.
SOCKET_TIMEOUT_MS = 1500
RECONNECT = {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 100}


def open_producer(kafka: Cluster, **config: Any) -> Producer:
    """A producer that sends at once, gives up waiting soon, and tries again soon."""
    defaults = {
        "linger_ms": 0,
        "retry_backoff_ms": 10,
        "retry_backoff_max_ms": 50,
        "socket_timeout_ms": SOCKET_TIMEOUT_MS,
        **RECONNECT,
    }
    return Producer(settings(kafka.bootstrap_servers, **(defaults | config)))


def send(producer: Producer, topic: str, *values: str, partition: int = 0) -> Delivery:
    """Produce one after the other, each once the one before was reported."""
    delivery = Delivery()
    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivery)
        flush(producer)
    return delivery


def begin(producer: Producer, topic: str, value: str, partition: int = 0) -> Delivery:
    """Produce, and do not wait."""
    delivery = Delivery()
    producer.produce(topic, value, partition=partition, on_delivery=delivery)
    producer.poll(0)
    return delivery


def warm(producer: Producer, topic: str, *partitions: int) -> None:
    """Have the producer know the topic and be connected to its leader."""
    for partition in partitions or (0,):
        assert send(producer, topic, "warm", partition=partition).errors == []


@contextmanager
def impatient_consumer(kafka: Cluster, **config: Any) -> Iterator[Consumer]:
    """A consumer that gives up waiting for an answer soon."""
    defaults = {"socket_timeout_ms": SOCKET_TIMEOUT_MS, "retry_backoff_ms": 10, **RECONNECT}
    with open_consumer(kafka.bootstrap_servers, **(defaults | config)) as consumer:
        yield consumer


def stored(kafka: Cluster, topic: str, partition: int | None = None) -> list[str]:
    """The values in a topic."""
    return [(record.value or b"").decode() for record in kafka.records(topic, partition)]


def polled(producer: Producer, delivery: Delivery, count: int = 1) -> Delivery:
    """Wait for so many reports."""

    def reported() -> bool:
        producer.poll(0.02)
        return len(delivery.messages) >= count

    wait_until(reported, what="the delivery report")
    return delivery
