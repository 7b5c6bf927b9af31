"""The numbers of a real cluster, as the admin side reads them."""

from __future__ import annotations

from mockbroker.admin import ServerView
from mockbroker_fixtures import Cluster


def snapshots(kafka: Cluster) -> ServerView:
    """A view made in the cluster's own run, as `serve` makes it."""
    import trio

    return kafka.call(lambda _: ServerView(kafka.server, trio.lowlevel.current_trio_token()))


def test_a_fresh_cluster_has_brokers_and_nothing_else():
    with Cluster(brokers=2) as kafka:
        view = snapshots(kafka)
        snapshot = kafka.call(lambda _: view.snapshot())
    assert (snapshot.brokers, snapshot.topics, snapshot.partitions) == (2, 0, 0)
    assert snapshot.requests == {}
    assert snapshot.groups == {}
    assert snapshot.connections_open == 0
    assert snapshot.uptime_ms >= 0


def test_looking_brings_no_internal_topic_into_being():
    with Cluster(brokers=1) as kafka:
        view = snapshots(kafka)
        kafka.call(lambda _: view.snapshot())
        assert kafka.call(lambda cluster: list(cluster.topics)) == []


def test_topics_records_requests_and_bytes_are_counted():
    from confluent_kafka import Producer

    with Cluster(brokers=1, topics={"orders": 4}) as kafka:
        view = snapshots(kafka)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", value=str(number).encode())
        assert producer.flush(20) == 0
        snapshot = kafka.call(lambda _: view.snapshot())
    assert (snapshot.topics, snapshot.partitions) == (1, 4)
    assert snapshot.records_appended == 10
    assert snapshot.requests["PRODUCE"] >= 1
    assert snapshot.requests["API_VERSIONS"] >= 1
    assert snapshot.connections_open >= 1
    assert snapshot.bytes_in > 100
    assert snapshot.bytes_out > 100
    assert snapshot.protocol_errors == 0


def test_a_deleted_topic_takes_nothing_off_the_counter():
    with Cluster(brokers=1) as kafka:
        from mockbroker.actors.config import SeedRecord, TopicSpec
        from mockbroker.actors.seeding import seed_topics

        view = snapshots(kafka)
        spec = TopicSpec("orders", records=[SeedRecord(b"a"), SeedRecord(b"b")])
        kafka.call(lambda cluster: seed_topics(cluster, [spec]))
        before = kafka.call(lambda _: view.snapshot())
        kafka.call(lambda cluster: cluster.delete_topic("orders"))
        after = kafka.call(lambda _: view.snapshot())
    assert (before.topics, before.records_appended) == (1, 2)
    assert (after.topics, after.records_appended) == (0, 2)


def test_clients_that_are_told_to_wait_are_counted_by_quota():
    from mockbroker.core.quotas.client_quotas import entity_of

    with Cluster(brokers=1) as kafka:
        view = snapshots(kafka)
        before = kafka.call(lambda _: view.snapshot())

        def throttle(cluster):
            entity = entity_of([("user", None)])
            cluster.quotas.alter(entity, {"producer_byte_rate": 1.0}, validate_only=False)
            cluster.quotas.throttling.note("producer_byte_rate", 250)
            return view.snapshot()

        after = kafka.call(throttle)
    assert (before.throttled, before.throttled_ms) == ({}, {})
    assert after.throttled == {"producer_byte_rate": 1}
    assert after.throttled_ms == {"producer_byte_rate": 250}


def test_groups_are_counted_by_state():
    from confluent_kafka import Consumer

    with Cluster(brokers=3, topics={"orders": 1}) as kafka:
        view = snapshots(kafka)
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
        stable = kafka.call(lambda _: view.snapshot().groups)
        consumer.close()
        left = kafka.call(lambda _: view.snapshot().groups)
    assert stable == {"Stable": 1}
    assert left.get("Stable", 0) == 0
