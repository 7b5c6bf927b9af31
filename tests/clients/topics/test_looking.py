"""Topics and brokers as administrators see and steer them: leaders, replicas, configs."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer, ElectionType, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonPartition

from mockbroker import Cluster
from tests.support.members import settings
from tests.support.watched import fill


def shown(admin: AdminClient, topic: str) -> list[tuple[int, list[int], list[int]]]:
    """Leader, replicas and ISR of each partition, as `describe_topics` shows them."""
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(20)
    return [
        (each.leader.id, [node.id for node in each.replicas], [node.id for node in each.isr])
        for each in described.partitions
    ]


@pytest.mark.covers("S33")
def test_leader_replicas_and_isr_are_shown_as_they_are(kafka: Cluster, admin: AdminClient) -> None:
    """Leader 3, replicas 1, 2, 3, ISR 2, 3; DescribeTopicPartitions adds eligible leaders."""

    def script(cluster: Any) -> None:
        topic = cluster.create_topic("scripted", assignments={0: [1, 2, 3], 1: [2, 1, 3]})
        partition = topic.partitions[0]
        partition.leader_id, partition.isr = 3, [2, 3]
        cluster.metadata.changed(topic)

    kafka.call(script)
    assert shown(admin, "scripted") == [(3, [1, 2, 3], [2, 3]), (2, [2, 1, 3], [2, 1, 3])]
    python = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    try:
        (topic,) = python.describe_topic_partitions(["scripted"])["topics"]
    finally:
        python.close()
    (first, _) = topic["partitions"]
    assert (first["leader_id"], first["replica_nodes"], first["isr_nodes"]) == (
        3,
        [1, 2, 3],
        [2, 3],
    )
    assert not first["eligible_leader_replicas"]
    assert not first["last_known_elr"]


@pytest.mark.covers("S46")
def test_a_topic_is_partitions_on_brokers_and_partitions_are_messages(
    kafka: Cluster, admin: AdminClient
) -> None:
    """Four partitions on three brokers, 400 messages in them: the three levels add up."""
    fill(kafka, "t", 400)
    metadata = admin.list_topics("t", timeout=20)
    leaders = Counter(p.leader for p in metadata.topics["t"].partitions.values())
    assert set(leaders) == set(metadata.brokers) == {1, 2, 3}
    assert sorted(leaders.values()) == [1, 1, 2]
    assert Counter(record.partition for record in kafka.records("t")) == dict.fromkeys(
        range(4), 100
    )
    offsets = [record.offset for record in kafka.records("t", 0)]
    assert offsets == list(range(100))


@pytest.mark.covers("S47")
@pytest.mark.mock_kafka(topics={"four": 4, "one": 1})
def test_order_is_kept_inside_of_a_partition_only(kafka: Cluster) -> None:
    """Each key in order in four partitions, but not all of them together; everything in order in
    one.
    """
    producer = Producer(settings(kafka, enable_idempotence=True))
    for topic in ("four", "one"):
        for number in range(400):
            producer.produce(topic, str(number), key=f"key-{number % 10}")
    producer.flush(30)
    read: dict[str, list[tuple[str, int]]] = {"four": [], "one": []}
    for topic, partitions in (("four", 4), ("one", 1)):
        consumer = Consumer(settings(kafka, group_id="g", auto_offset_reset="earliest"))
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
        while len(read[topic]) < 400:
            message = consumer.poll(1)
            if message is not None:
                assert message.error() is None
                read[topic].append((message.key().decode(), int(message.value())))
        consumer.close()
    for key in {key for key, _ in read["four"]}:
        mine = [number for name, number in read["four"] if name == key]
        assert mine == sorted(mine)
        assert len(mine) == 40
    assert [number for _, number in read["four"]] != list(range(400))
    assert [number for _, number in read["one"]] == list(range(400))


@pytest.mark.covers("S48")
@pytest.mark.mock_kafka(topics={}, node_ids=[0, 1, 2])
def test_a_partition_moves_and_its_consumer_goes_on(kafka: Cluster) -> None:
    """T-TEST-0 goes from (0, 1) to (1, 2) while it is read and written; no record is lost."""
    kafka.call(lambda cluster: cluster.create_topic("T-TEST", assignments={0: [0, 1]}))
    fill(kafka, "T-TEST", 50)
    consumer = Consumer(settings(kafka, group_id="g", auto_offset_reset="earliest"))
    consumer.assign([TopicPartition("T-TEST", 0, 0)])
    values: list[bytes] = []

    def read(count: int) -> None:
        while len(values) < count:
            message = consumer.poll(1)
            if message is not None:
                assert message.error() is None
                values.append(message.value())

    read(50)
    python = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    partition = PythonPartition("T-TEST", 0)
    deadline = 0.0
    try:
        assert python.alter_partition_reassignments({partition: [1, 2]}) == {partition: None}
        while shown_moves := python.list_partition_reassignments():
            moving = shown_moves[partition]
            assert (moving["adding_replicas"], moving["removing_replicas"]) == ([2], [0])
            deadline = deadline or time.monotonic() + 20
            assert time.monotonic() < deadline
    finally:
        python.close()
    admin = AdminClient(settings(kafka))
    assert shown(admin, "T-TEST") == [(1, [1, 2], [1, 2])]
    fill(kafka, "T-TEST", 50)
    read(100)
    assert values == [str(n).encode() for n in [*range(50), *range(50)]]
    consumer.close()


@pytest.mark.covers("S49")
@pytest.mark.mock_kafka(topics={})
def test_electing_the_preferred_leaders_evens_out_a_skew(
    kafka: Cluster, admin: AdminClient
) -> None:
    """All six leaders on one broker; ElectLeaders puts each back on its first replica."""

    def skew(cluster: Any) -> None:
        replicas = {index: [1 + (index + k) % 3 for k in range(3)] for index in range(6)}
        topic = cluster.create_topic("skewed", assignments=replicas)
        for partition in topic.partitions:
            partition.leader_id = 1
        cluster.metadata.changed(topic)

    kafka.call(skew)
    assert Counter(leader for leader, _, _ in shown(admin, "skewed")) == {1: 6}
    elected = admin.elect_leaders(ElectionType.PREFERRED, None).result(20)
    assert {p.partition for p, error in elected.items() if error is None} == {1, 2, 4, 5}
    assert Counter(leader for leader, _, _ in shown(admin, "skewed")) == {1: 2, 2: 2, 3: 2}


THREE_NODES = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
}


@pytest.mark.covers("S50")
@pytest.mark.parametrize("min_isr", ["2", "1"])
def test_a_brokers_configs_are_what_it_was_started_with(min_isr: str) -> None:
    """Replication factors of three nodes, with a minimum ISR of two or of one; what was not set has
    Kafka's default.
    """
    configs = THREE_NODES | {
        "transaction.state.log.min.isr": min_isr,
        "min.insync.replicas": min_isr,
    }
    with Cluster(brokers=3, configs=configs) as kafka:
        admin = AdminClient(settings(kafka))
        resource = ConfigResource(ResourceType.BROKER, "2")
        described = admin.describe_configs([resource])[resource].result(20)
        assert {name: described[name].value for name in configs} == configs
        for name in (*THREE_NODES, "transaction.state.log.min.isr"):
            assert described[name].source == ConfigSource.STATIC_BROKER_CONFIG.value
        assert described["num.partitions"].value == "1"
        assert described["num.partitions"].source == ConfigSource.DEFAULT_CONFIG.value
