"""What Spark sends: which APIs in which versions, to whom, and how often."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from mockbroker import Cluster
from mockbroker.spark.versions import needs_of
from mockbroker_protocol import ApiKey
from tests.spark.steps import SparkKafka
from tests.support.librdkafka import LINGER_MS
from tests.support.request_log import RequestLog

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

# Spark 3.5 has kafka-clients 3.4.1, Spark 4.0 has 3.9.0 and Spark 4.2 has 3.9.2.
SPARK = version("pyspark")
CLIENTS = needs_of(SPARK).clients
OLD = SPARK.startswith("3.")

READ = (
    {("API_VERSIONS", 3), ("FETCH", 13), ("LIST_OFFSETS", 7), ("METADATA", 12)}
    if OLD
    else {("API_VERSIONS", 4), ("FETCH", 17), ("LIST_OFFSETS", 9), ("METADATA", 12)}
)
BY_ADMIN = set() if OLD else {("DESCRIBE_CLUSTER", 1), ("DESCRIBE_TOPIC_PARTITIONS", 0)}
BY_CONSUMER = {
    ("FIND_COORDINATOR", 4 if OLD else 6),
    ("JOIN_GROUP", 9),
    ("SYNC_GROUP", 5),
    ("LEAVE_GROUP", 5),
    ("OFFSET_FETCH", 8 if OLD else 9),
}
WRITE = (
    {("API_VERSIONS", 3), ("METADATA", 12), ("INIT_PRODUCER_ID", 4), ("PRODUCE", 9)}
    if OLD
    else {("API_VERSIONS", 4), ("METADATA", 12), ("INIT_PRODUCER_ID", 5), ("PRODUCE", 11)}
)
SOMETIMES = {("HEARTBEAT", 4)}


@pytest.mark.covers("S126", "S320")
def test_a_read_looks_up_offsets_and_fetches_without_a_group(
    steps: SparkKafka, requests: RequestLog, topic: str
) -> None:
    """Progress is in Spark's checkpoint alone: nothing is committed."""
    steps.fill(topic, map(str, range(100)))
    requests.clear()
    assert steps.read(topic).count() == 100
    assert requests.versions() == READ | BY_ADMIN
    assert {each.software for each in requests.of(ApiKey.FETCH)} == {f"apache-kafka-java {CLIENTS}"}


@pytest.mark.covers("S320")
def test_a_read_of_the_deprecated_kind_joins_a_group_of_one(
    steps: SparkKafka, requests: RequestLog, topic: str, offsets_by_consumer: None
) -> None:
    steps.fill(topic, map(str, range(100)))
    requests.clear()
    assert steps.read(topic).count() == 100
    assert requests.versions() - SOMETIMES == READ | BY_CONSUMER
    [first, second] = requests.of(ApiKey.JOIN_GROUP)[:2]
    assert (first.request.member_id, first.response.error_code) == ("", 79)
    assert second.request.member_id == first.response.member_id
    assert (second.response.error_code, second.response.generation_id) == (0, 1)


def test_a_write_sends_nothing_but_its_records(
    steps: SparkKafka, requests: RequestLog, topic: str
) -> None:
    frame = steps.spark.range(10).selectExpr("cast(id as string) as value")
    # A setting that no other test has, for Spark keeps its producers.
    steps.write(frame, topic, kafka_batch_size=2000)
    assert requests.versions() == WRITE


@pytest.mark.covers("S142")
@pytest.mark.parametrize(("isolation", "level"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_the_isolation_level_is_told_to_the_broker(
    steps: SparkKafka, requests: RequestLog, topic: str, isolation: str, level: int
) -> None:
    """Plain records are the same under both; the driver asks for offsets under it as well."""
    steps.fill(topic, map(str, range(20)))
    requests.clear()
    assert steps.read(topic, kafka_isolation_level=isolation).count() == 20
    # Spark's full pool may close a consumer meanwhile, with a Fetch that names no topic.
    asked = [each for each in requests.of(ApiKey.FETCH, ApiKey.LIST_OFFSETS) if each.request.topics]
    assert {each.request.isolation_level for each in asked} == {level}


@pytest.mark.covers("S149")
def test_each_partition_is_fetched_from_its_leader_only(
    steps: SparkKafka, kafka: Cluster, requests: RequestLog, topic: str
) -> None:
    for partition in range(4):
        steps.fill(topic, map(str, range(20)), partition=partition)
    requests.clear()
    assert steps.read(topic).count() == 80
    leaders = kafka.call(
        lambda cluster: {each.index: each.leader_id for each in cluster.topics[topic].partitions}
    )
    fetched = {
        (partition.partition, each.node_id)
        for each in requests.of(ApiKey.FETCH)
        for asked in each.request.topics
        for partition in asked.partitions
    }
    assert fetched == set(leaders.items())


def test_offsets_are_looked_up_twice_for_each_poll(
    steps: SparkKafka, requests: RequestLog, topic: str
) -> None:
    """2,000 records of one batch are four polls of 500: one Fetch may serve them all."""
    steps.fill(topic, map(str, range(2000)), partition=0, config={"linger.ms": LINGER_MS})
    requests.clear()
    assert steps.read(topic).count() == 2000
    looked_up = [
        each.request.topics[0].partitions[0].timestamp
        for each in requests.of(ApiKey.LIST_OFFSETS)
        if each.client_id.startswith("consumer")
    ]
    assert looked_up.count(-2) >= 4
    assert looked_up.count(-1) >= 4
    # Spark's full pool may close consumers meanwhile: each ends its fetch session.
    fetched = [each for each in requests.of(ApiKey.FETCH) if each.request.session_epoch != -1]
    assert len(fetched) < len(looked_up)
