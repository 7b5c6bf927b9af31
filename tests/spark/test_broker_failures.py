"""A running query while brokers fail: it goes on, or stops with an error, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mockbroker_fixtures import (
    SparkKafka,
    assert_exactly_once,
    assert_no_gap,
    read_checkpoint,
    spark_condition,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.xdist_group("spark"),
    # Broker 2 leads orders-1, and 1 and 3 can take over.
    pytest.mark.mock_kafka(brokers=3, configs={"min.insync.replicas": 1}),
]

PARTITIONS = 3
BATCH = 10
# So long may a client wait for a broker that says nothing, before it asks another.
PATIENCE_MS = 2_000


class Job:
    """A query that keeps what it reads, and a topic with a replica of each partition everywhere."""

    def __init__(self, spark: SparkSession, kafka: SparkKafka, checkpoint: Path) -> None:
        self.spark, self.kafka, self.checkpoint = spark, kafka, checkpoint
        self.sink: list[dict[str, object]] = []
        self.sent = 0
        kafka.create_topics(["orders"], PARTITIONS, replication_factor=3)

    def start(self, **options: object) -> StreamingQuery:
        patient = {
            "kafka_request_timeout_ms": PATIENCE_MS,
            "kafka_default_api_timeout_ms": 5 * PATIENCE_MS,
            "fetchOffset_numRetries": 30,
        }
        options = self.kafka.options("orders", **{**patient, **options})
        frame = self.spark.readStream.format("kafka").options(**options).load()
        writer = frame.writeStream.foreachBatch(self.write)
        return writer.option("checkpointLocation", str(self.checkpoint)).start()

    def write(self, frame: DataFrame, _number: int) -> None:
        values = frame.selectExpr("CAST(value AS STRING) AS value").collect()
        self.sink += [row.asDict() for row in values]

    def send(self) -> None:
        """Ten records for each partition."""
        for partition in range(PARTITIONS):
            values = range(self.sent, self.sent + BATCH)
            self.kafka.send_messages("orders", [(None, n) for n in values], partition)
            self.sent += BATCH

    def leader(self) -> int:
        return self.kafka.call(lambda cluster: cluster.topics["orders"].partitions[1].leader_id)

    def assert_once(self) -> None:
        assert_exactly_once(self.kafka.records("orders"), self.sink, "value")
        assert_no_gap(self.checkpoint)


@pytest.fixture
def job(spark: SparkSession, spark_kafka: SparkKafka, checkpoint_dir: Path) -> Job:
    made = Job(spark, spark_kafka, checkpoint_dir)
    made.send()
    return made


def kill(kafka: SparkKafka, node: int) -> None:
    kafka.broker(node).stop(how="unclean")


def shut_down(kafka: SparkKafka, node: int) -> None:
    kafka.broker(node).stop(how="controlled")


def pause(kafka: SparkKafka, node: int) -> None:
    """As under SIGSTOP; the controller gives its leaders to others at once."""
    kafka.act("pause_broker", node=node, fence_after="0ms")


def depose(kafka: SparkKafka, node: int) -> None:
    other = next(each for each in (1, 2, 3) if each != node)
    kafka.act("move_leader", topic="orders", partition=1, node=other)


@pytest.mark.covers("S338")
@pytest.mark.parametrize(
    "fail", [kill, shut_down, pytest.param(pause, marks=pytest.mark.slow), depose]
)
def test_a_query_goes_on_when_a_leader_is_lost(
    job: Job, fail: Callable[[SparkKafka, int], None]
) -> None:
    """The client finds the new leader by itself: no batch fails, none is repeated."""
    query = job.start()
    query.processAllAvailable()
    was = job.leader()
    fail(job.kafka, was)
    assert job.leader() != was
    job.send()
    query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    job.assert_once()


@pytest.mark.covers("S338")
def test_a_leader_that_is_cut_off_lets_records_look_lost(job: Job) -> None:
    """The others have elected a new leader. The old one does not know, and neither do those who ask
    it: the end that the driver was told lies beyond the log that the executors are shown.

    That is an alarm and no loss: from its checkpoint the query goes on, with each record once.
    """
    query = job.start(kafkaConsumer_pollTimeoutMs=500)
    query.processAllAvailable()
    job.kafka.act("cut_network", nodes=job.leader(), fence_after="0ms")
    job.send()
    with pytest.raises(Exception, match="may have been lost") as failure:
        query.awaitTermination(120)
    assert spark_condition(failure.value) == "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE"
    job.kafka.act("heal_network")
    again = job.start()
    again.processAllAvailable()
    again.stop()
    job.assert_once()


@pytest.mark.covers("S338")
def test_a_query_that_found_no_leader_goes_on_from_its_checkpoint(job: Job) -> None:
    query = job.start(fetchOffset_numRetries=1)
    query.processAllAvailable()
    before = read_checkpoint(job.checkpoint)
    job.kafka.faults.add(
        match={"client_id": "adminclient-*", "api": "Metadata", "topic": "orders"},
        do={"falsify_metadata": {"error": "TOPIC_AUTHORIZATION_FAILED"}},
    )
    job.send()
    with pytest.raises(Exception, match=r"TopicAuthorizationException|LeaderNotAvailable"):
        query.awaitTermination(120)
    job.kafka.faults.clear()
    again = job.start()
    again.processAllAvailable()
    again.stop()
    assert read_checkpoint(job.checkpoint).query_id == before.query_id
    job.assert_once()
