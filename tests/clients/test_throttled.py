"""Clients of other languages than Java, over their quota: they hear of it, and lose nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.quotas.client_quotas import entity_of
from tests.support.librdkafka import open_consumer, poll, until
from tests.support.waiting import wait_until

# Ten windows of this many bytes may pass at once: two of the values are a little too much, and have
# to wait for a fraction of a second. The clock stands still while they are sent: the quota allows
# the second one a little later.
RATE = 2_000
VALUE = b"x" * 10_100


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"orders": 1}) as cluster:
        yield cluster


def allow(kafka: Cluster, client: str, **quotas: float) -> None:
    entity = entity_of([("client-id", client)])
    kafka.call(lambda cluster: cluster.quotas.alter(entity, quotas, validate_only=False))


def told(kafka: Cluster, quota: str) -> int:
    """How often a client was told to wait."""
    throttling = kafka.call(lambda cluster: cluster.quotas.throttling)
    return 0 if throttling is None else throttling.throttled.get(quota, 0)


@pytest.mark.covers("S158")
def test_librdkafka_is_told_while_it_catches_up_and_gets_every_record(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key in ("first", "second"):
        producer.produce("orders", VALUE, key=key)
        assert producer.flush(30) == 0
    allow(kafka, "late", consumer_byte_rate=RATE)
    heard: list[float] = []
    with open_consumer(
        kafka.bootstrap_servers,
        client_id="late",
        max_partition_fetch_bytes=1000,
        throttle_cb=lambda event: heard.append(event.throttle_time),
    ) as consumer:
        kafka.clock.freeze()
        consumer.assign([TopicPartition("orders", 0, 0)])
        records = until(lambda: bool(heard), consumer)
        kafka.clock.thaw()
        records += poll(consumer, 2 - len(records))
    assert [record.key() for record in records] == [b"first", b"second"]
    assert told(kafka, "consumer_byte_rate") > 0


def test_kafka_python_waits_and_goes_on(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    from kafka import KafkaProducer

    allow(kafka, "shop", producer_byte_rate=RATE)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, client_id="shop")
    kafka.clock.freeze()
    for _ in range(2):
        producer.send("orders", VALUE).get(30)
    wait_until(lambda: "ProduceResponse throttled by broker" in caplog.text)
    kafka.clock.thaw()
    producer.close()
    assert told(kafka, "producer_byte_rate") == 1
    assert len(kafka.records("orders")) == 2
