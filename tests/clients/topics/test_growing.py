"""Topics that grow, appear and vanish while clients use them, and patterns that match them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaTimeoutError

from mockbroker import Cluster
from tests.support.kafka_python import POLL_MS, TIMEOUT_S
from tests.support.members import Members, look, settings
from tests.support.watched import fill

# The clients' own clocks, scaled down.
FRESH = {"metadata_max_age_ms": 300, "topic_metadata_refresh_interval_ms": 100}


@pytest.mark.covers("S40", "S218")
@pytest.mark.mock_kafka(topics={"jinx01": 1})
def test_new_partitions_are_shared_out(
    kafka: Cluster, members: Members, admin: AdminClient
) -> None:
    """Within metadata.max.age.ms the group joins again, one generation later, and has all four."""
    member = members("g", "jinx01", **FRESH)
    members.settle(member, partitions=1)
    generation = look(kafka, "g").generation
    admin.create_partitions([NewPartitions("jinx01", 4)])["jinx01"].result(20)
    members.settle(member, partitions=4)
    assert look(kafka, "g").generation == generation + 1
    fill(kafka, "jinx01", 8)
    members.collect(8)
    for count in (4, 3):
        with pytest.raises(KafkaException) as refused:
            admin.create_partitions([NewPartitions("jinx01", count)])["jinx01"].result(20)
        assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


@pytest.mark.covers("S41")
@pytest.mark.mock_kafka(topics={"topic1": 1, "other": 1})
def test_a_pattern_takes_in_a_topic_that_is_made_later(kafka: Cluster, members: Members) -> None:
    """After the metadata refresh the group rebalances and has the new topic as well."""
    member = members("g", "^topic.*", **FRESH)
    assert members.settle(member, partitions=1) == {member.name: [("topic1", 0)]}
    generation = look(kafka, "g").generation
    kafka.topic("topic9").create()
    kafka.topic("not-topic").create()
    owned = members.settle(member, partitions=2)
    assert owned == {member.name: [("topic1", 0), ("topic9", 0)]}
    assert look(kafka, "g").generation == generation + 1


@pytest.mark.covers("S41")
@pytest.mark.mock_kafka(topics={"topic1": 3})
def test_several_members_with_a_pattern_share_the_new_topic(
    kafka: Cluster, members: Members
) -> None:
    """Three members that notice it at about the same time end up in one assignment of six."""
    group = [members("g", "^topic.*", **FRESH) for _ in range(3)]
    members.settle(*group, partitions=3)
    generation = look(kafka, "g").generation
    kafka.topic("topic9").create(3)
    owned = members.settle(*group, partitions=6)
    assert sorted(map(len, owned.values())) == [2, 2, 2]
    assert generation < look(kafka, "g").generation <= generation + 3


NAMES = ("topi", "topic", "topiccc", "topic1", "my-topic")


def match_of_librdkafka(kafka: Cluster, pattern: str) -> set[str]:
    with Members(kafka) as members:
        member = members("g", pattern)
        members.until(lambda: bool(member.errors or member.events))
        return {topic for topic, _ in member.owned}


def match_of_kafka_python(kafka: Cluster, pattern: str) -> set[str]:
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g")
    try:
        consumer.subscribe(pattern=pattern)
        assert consumer.partitions_for_topic("topic")
        deadline = time.monotonic() + TIMEOUT_S
        while not consumer.assignment() and time.monotonic() < deadline:
            consumer.poll(timeout_ms=POLL_MS)
        return {each.topic for each in consumer.assignment()}
    finally:
        consumer.close()


def match_of_aiokafka(kafka: Cluster, pattern: str) -> set[str]:
    async def match() -> set[str]:
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g")
        consumer.subscribe(pattern=pattern)
        await consumer.start()
        try:
            deadline = time.monotonic() + 20
            while not consumer.assignment() and time.monotonic() < deadline:
                await consumer.getmany(timeout_ms=50)
            return {each.topic for each in consumer.assignment()}
        finally:
            await consumer.stop()

    return asyncio.run(match())


@pytest.mark.covers("S42")
@pytest.mark.parametrize(
    ("match", "pattern", "matched"),
    [
        (match_of_librdkafka, "^topic*", {"topi", "topic", "topiccc", "topic1"}),
        (match_of_librdkafka, "^topic*$", {"topi", "topic", "topiccc"}),
        (match_of_librdkafka, "topic*", set()),  # without ^ it is a name
        (match_of_kafka_python, "topic*", {"topi", "topic", "topiccc", "topic1"}),
        (match_of_kafka_python, "topic*$", {"topi", "topic", "topiccc"}),
        (match_of_aiokafka, "topic*", {"topi", "topic", "topiccc", "topic1"}),
        (match_of_aiokafka, "topic*$", {"topi", "topic", "topiccc"}),
    ],
)
@pytest.mark.mock_kafka(topics=dict.fromkeys(NAMES, 1))
def test_what_a_pattern_means_is_up_to_the_client(
    kafka: Cluster, match: Callable[[Cluster, str], set[str]], pattern: str, matched: set[str]
) -> None:
    """These three do not anchor it at its end; Java's does (its own tests show it)."""
    assert match(kafka, pattern) == matched


@pytest.mark.covers("S39")
@pytest.mark.mock_kafka(topics={"t": 2}, configs={"auto.create.topics.enable": "false"})
def test_a_topic_is_deleted_while_clients_use_it(
    kafka: Cluster, members: Members, admin: AdminClient
) -> None:
    """Producers and consumers are told that it is unknown; its group loses it and goes on."""
    fill(kafka, "t", 4)
    member = members("g", "t", **FRESH)
    members.collect(4)
    member.commit()
    producer = Producer(settings(kafka, topic_metadata_propagation_max_ms=0, **FRESH))
    failed: list[KafkaError] = []
    admin.delete_topics(["t"])["t"].result(20)
    members.until(lambda: bool(member.errors) and not member.owned)
    assert member.errors[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    producer.produce("t", b"x", on_delivery=lambda error, _: failed.append(error))
    producer.flush(20)
    assert failed[0].code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    with pytest.raises(KafkaException) as unknown:
        admin.list_offsets({TopicPartition("t", 0): OffsetSpec.latest()})[
            TopicPartition("t", 0)
        ].result(20)
    assert "No leaders found" in unknown.value.args[0].str()
    kafka.topic("t").create(2)
    members.settle(member, partitions=2)
    # Its committed offsets went with it: the new topic of that name is read from its start.
    assert set(member.committed(("t", 0), ("t", 1)).values()) == {-1001}
    fill(kafka, "t", 2)
    members.until(lambda: len(member.records) == 6)


@pytest.mark.covers("S39")
@pytest.mark.mock_kafka(configs={"auto.create.topics.enable": "false"})
def test_asking_a_deleted_topic_for_its_end_blocks_until_the_timeout(
    kafka: Cluster, admin: AdminClient
) -> None:
    """kafka-python, as Java, asks again and again until its own timeout."""
    fill(kafka, "t", 4)
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    try:
        end = PythonPartition("t", 0)
        assert consumer.end_offsets([end]) == {end: 1}
        admin.delete_topics(["t"])["t"].result(20)
        started_s = time.monotonic()
        with pytest.raises(KafkaTimeoutError):
            consumer.end_offsets([end], timeout_ms=700)
        assert 0.65 <= time.monotonic() - started_s < 10
    finally:
        consumer.close()
