"""The metrics of a real cluster."""

from __future__ import annotations

from mockbroker import Cluster
from mockbroker.admin import ServerTarget


def target_of(kafka: Cluster) -> ServerTarget:
    """A target made in the cluster's own run, as `serve` makes it."""
    return kafka.call(lambda _: ServerTarget(kafka.server))


def test_a_fresh_cluster_has_brokers_and_nothing_else():
    with Cluster(brokers=2) as kafka:
        target = target_of(kafka)
        found = kafka.call(lambda _: target.metrics())
    assert (found.brokers, found.topics, found.partitions) == (2, 0, 0)
    assert found.requests == {}
    assert found.groups == {}
    assert found.connections_open == 0
    assert found.uptime_ms >= 0


def test_looking_brings_no_internal_topic_into_being():
    with Cluster(brokers=1) as kafka:
        target = target_of(kafka)
        kafka.call(lambda _: target.metrics())
        assert kafka.call(lambda cluster: list(cluster.topics)) == []


def test_topics_records_requests_and_bytes_are_counted():
    from confluent_kafka import Producer

    with Cluster(brokers=1, topics={"orders": 4}) as kafka:
        target = target_of(kafka)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", value=str(number).encode())
        assert producer.flush(20) == 0
        found = kafka.call(lambda _: target.metrics())
    assert (found.topics, found.partitions) == (1, 4)
    assert found.records_appended == 10
    assert found.requests["PRODUCE"] >= 1
    assert found.requests["API_VERSIONS"] >= 1
    assert found.connections_open >= 1
    assert found.bytes_in > 100
    assert found.bytes_out > 100
    assert found.protocol_errors == 0


def test_a_deleted_topic_takes_nothing_off_the_counter():
    with Cluster(brokers=1) as kafka:
        from mockbroker.server.config import SeedRecord, TopicSpec
        from mockbroker.server.seeding import seed_topics

        target = target_of(kafka)
        spec = TopicSpec("orders", records=[SeedRecord(b"a"), SeedRecord(b"b")])
        kafka.call(lambda cluster: seed_topics(cluster, [spec]))
        before = kafka.call(lambda _: target.metrics())
        kafka.call(lambda cluster: cluster.delete_topic("orders"))
        after = kafka.call(lambda _: target.metrics())
    assert (before.topics, before.records_appended) == (1, 2)
    assert (after.topics, after.records_appended) == (0, 2)


def test_clients_that_are_told_to_wait_are_counted_by_quota():
    from mockbroker.core.quotas.client_quotas import entity_of

    with Cluster(brokers=1) as kafka:
        target = target_of(kafka)
        before = kafka.call(lambda _: target.metrics())

        def throttle(cluster):
            entity = entity_of([("user", None)])
            cluster.quotas.alter(entity, {"producer_byte_rate": 1.0}, validate_only=False)
            cluster.quotas.throttling.record_throttle("producer_byte_rate", 250)
            return target.metrics()

        after = kafka.call(throttle)
    assert (before.throttled, before.throttled_ms) == ({}, {})
    assert after.throttled == {"producer_byte_rate": 1}
    assert after.throttled_ms == {"producer_byte_rate": 250}


def test_groups_are_counted_by_state():
    from confluent_kafka import Consumer

    with Cluster(brokers=3, topics={"orders": 1}) as kafka:
        target = target_of(kafka)
        consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "kitchen",
                "auto.offset.reset": "earliest",
            }
        )
        joined: list[object] = []
        consumer.subscribe(["orders"], on_assign=lambda _, partitions: joined.extend(partitions))
        while not joined:
            consumer.poll(0.1)
        stable = kafka.call(lambda _: target.metrics().groups)
        consumer.close()
        left = kafka.call(lambda _: target.metrics().groups)
    assert stable == {"Stable": 1}
    assert left.get("Stable", 0) == 0
