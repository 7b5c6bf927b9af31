"""How far a query is behind, although it commits nothing: by its checkpoint, and by its Fetches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from mockbroker_fixtures import SparkKafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]


class Query:
    """A query on the topic orders, which has two partitions."""

    def __init__(self, spark: SparkSession, kafka: SparkKafka, checkpoint: Path) -> None:
        self.spark, self.kafka, self.checkpoint = spark, kafka, checkpoint
        kafka.create_topics(["orders"], 2)

    def send(self, count: int, partition: int) -> None:
        self.kafka.send_messages("orders", [(None, n) for n in range(count)], partition)

    def run(self, **options: object) -> None:
        frame = self.spark.readStream.format("kafka")
        frame = frame.options(**self.kafka.options("orders", **options)).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    def fetched(self) -> list[tuple[int, int, int]]:
        return [(each.partition, each.committed, each.lag) for each in self.kafka.spark_progress()]


@pytest.fixture
def query(spark: SparkSession, spark_kafka: SparkKafka, checkpoint_dir: Path) -> Query:
    return Query(spark, spark_kafka, checkpoint_dir)


@pytest.mark.covers("S332")
def test_progress_is_seen_in_what_is_fetched(query: Query) -> None:
    """The lag of a run of the query, in the fixtures and in the admin API."""
    query.send(10, partition=0)
    query.send(4, partition=1)
    query.run()
    assert query.fetched() == [(0, 10, 0), (1, 4, 0)]
    query.send(3, partition=1)
    assert query.fetched() == [(0, 10, 0), (1, 4, 3)]
    with urlopen(f"{query.kafka.admin_url}/v1/lag") as answer:
        shown = json.load(answer)
    assert {(each["kind"], each["topic"]) for each in shown} == {("fetched", "orders")}
    [group] = {each["group"] for each in shown}
    assert group.startswith("spark-kafka-source-")
    assert query.kafka.spark_progress("another") == []
    query.run()
    assert len(query.kafka.spark_progress(group)) == 2
    assert max(each.committed for each in query.kafka.spark_progress()) == 10


@pytest.mark.covers("S332")
def test_lag_by_the_checkpoint_is_what_is_not_done(query: Query) -> None:
    """To the high watermark, or for read_committed to the last stable offset."""
    query.send(10, partition=0)
    query.run(kafka_isolation_level="read_committed")
    query.kafka.act("hold_last_stable_offset", topic="orders")
    query.send(5, partition=0)
    query.send(2, partition=1)
    assert query.kafka.query_lag(query.checkpoint) == {("orders", 0): 5, ("orders", 1): 2}
    stable = query.kafka.query_lag(query.checkpoint, committed=True)
    assert stable == {("orders", 0): 0, ("orders", 1): 0}
    query.kafka.act("hold_last_stable_offset", topic="orders", release=True)
    assert query.kafka.query_lag(query.checkpoint, committed=True)["orders", 0] == 5


def test_what_is_fetched_may_be_ahead_of_what_is_done(query: Query) -> None:
    """One Fetch brings more than a batch: only the checkpoint knows how much of it is done."""
    query.send(10, partition=0)
    query.run(maxOffsetsPerTrigger=10)
    query.send(90, partition=0)
    assert query.kafka.query_lag(query.checkpoint)["orders", 0] == 90
    assert query.fetched()[0] == (0, 10, 90)


@pytest.mark.mock_kafka(brokers=1)
def test_the_methods_of_spark_s_own_tests(spark: SparkSession, spark_kafka: SparkKafka) -> None:
    """As those of its KafkaUtils: what is there already, or not there, is no error."""
    for _ in range(2):
        spark_kafka.create_topics(["orders", "bills"], num_partitions=2)
    spark_kafka.send_messages("orders", [("k1", "v1"), ("k2", 2), ("k1", "v3"), (b"k4", None)])
    expected = {"k1": "v3", "k2": "2", "k4": None}
    spark_kafka.assert_eventually(
        lambda: spark_kafka.get_all_records(spark, "orders"), expected, timeout=60
    )
    frame = spark.readStream.format("kafka").options(**spark_kafka.options("orders")).load()
    query = frame.writeStream.format("noop").start()
    spark_kafka.wait_for_query_alive(query)
    query.stop()
    with pytest.raises(AssertionError, match="not at work after 0 s"):
        spark_kafka.wait_for_query_alive(query, timeout=0)
    for _ in range(2):
        spark_kafka.delete_topics(["orders", "bills"])
    assert spark_kafka.call(lambda cluster: list(cluster.topics)) == []
    with pytest.raises(AssertionError, match=r"\[1\] after 0 s, not \[2\]"):
        spark_kafka.assert_eventually(lambda: [1], [2], timeout=0)


def test_a_cluster_may_be_set_up_and_torn_down_by_hand() -> None:
    kafka = SparkKafka(brokers=1)
    kafka.setup()
    kafka.create_topics(["orders"])
    kafka.teardown()
