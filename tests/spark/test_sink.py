"""Spark's sink: an idempotent producer that writes at least once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.records import BatchHeader, CompressionType
from tests.spark.steps import SparkKafka, finish, sorted_reads
from tests.support.request_log import RequestLog
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

POLL_S = 20.0


def read_with_librdkafka(kafka: Cluster, topic: str, partition: int, count: int) -> list[bytes]:
    """The values of a partition's first records."""
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader"}
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        messages = consumer.consume(count, POLL_S)
        assert [message.error() for message in messages] == [None] * count
        return [message.value() for message in messages]
    finally:
        consumer.close()


def test_keys_values_headers_partitions_and_topics_are_columns(
    steps: SparkKafka, kafka: Cluster, topic: str, other_topic: str
) -> None:
    frame = steps.spark.sql(
        f"""
        select '{topic}' as topic, 0 as partition, cast('k' as binary) as key,
               cast('v' as binary) as value, array(struct('h', cast('1' as binary))) as headers
        union all select '{other_topic}', 3, null, cast('' as binary), null
        union all select '{other_topic}', 2, cast('dead' as binary), null, null
        """
    )
    frame = frame.selectExpr(
        "topic",
        "partition",
        "key",
        "value",
        "cast(headers as array<struct<key:string,value:binary>>)",
    )
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "includeHeaders": "true"}
    frame.write.format("kafka").options(**options).save()
    [record] = kafka.expect_records(topic, 1)
    assert (record.partition, record.key, record.value) == (0, b"k", b"v")
    assert record.headers == (("h", b"1"),)
    tombstone, empty = kafka.expect_records(other_topic, 2)
    assert (tombstone.partition, tombstone.key, tombstone.value) == (2, b"dead", None)
    assert (empty.partition, empty.key, empty.value) == (3, None, b"")


@pytest.mark.covers("S101", "S326")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_of_every_codec_are_read_by_librdkafka(
    steps: SparkKafka, kafka: Cluster, topic: str, codec: str
) -> None:
    """Java frames snappy in blocks of its own; the batch is stored as it came."""
    frame = steps.spark.range(200).selectExpr("concat('value ', id) as value", "1 as partition")
    steps.write(frame.coalesce(1), topic, kafka_compression_type=codec)
    found = read_with_librdkafka(kafka, topic, 1, 200)
    assert found == [b"value %d" % n for n in range(200)]
    batches = kafka.call(
        lambda cluster: [
            BatchHeader(batch).codec for batch in cluster.topics[topic].partitions[1].log.batches()
        ]
    )
    assert set(batches) == {CompressionType[codec.upper()]}


def test_what_the_sink_wrote_is_read_back(steps: SparkKafka, topic: str) -> None:
    frame = steps.spark.range(1000).selectExpr(
        "cast(id as string) as key", "repeat(id, 9) as value"
    )
    steps.write(frame, topic)
    back = sorted_reads(steps.read(topic).collect())
    assert back == steps.stored(topic)
    assert sorted(value for _, _, value in back) == sorted(str(n) * 9 for n in range(1000))


def test_a_stream_copies_a_topic_and_goes_on_after_a_restart(
    steps: SparkKafka, kafka: Cluster, topic: str, other_topic: str
) -> None:
    def copy() -> None:
        frame = steps.stream(topic).select("key", "value")
        writer = steps.writer(frame).format("kafka").option("topic", other_topic)
        writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        finish(writer.trigger(availableNow=True).start())

    steps.fill(topic, map(str, range(50)))
    copy()
    kafka.expect_records(other_topic, 50)
    steps.fill(topic, map(str, range(50, 70)))
    copy()
    copied = [record.value for record in kafka.expect_records(other_topic, 70)]
    assert sorted(copied) == sorted(b"%d" % n for n in range(70))


@pytest.mark.covers("S116")
def test_the_sink_numbers_its_batches(
    steps: SparkKafka, kafka: Cluster, requests: RequestLog, topic: str
) -> None:
    """Every batch has the producer id that the broker gave, and the next sequence in turn."""
    frame = steps.spark.range(500).selectExpr("cast(id as string) as value", "2 as partition")
    # A setting that no other test has, for Spark keeps its producers.
    steps.write(frame.coalesce(1), topic, kafka_batch_size=1000)
    [given] = requests.of(ApiKey.INIT_PRODUCER_ID)
    assert given.response.producer_id >= 0
    assert given.response.producer_epoch == 0
    headers = kafka.call(
        lambda cluster: [
            BatchHeader(batch) for batch in cluster.topics[topic].partitions[2].log.batches()
        ]
    )
    assert {header.producer_id for header in headers} == {given.response.producer_id}
    assert [header.base_sequence for header in headers] == [
        header.base_offset for header in headers
    ]
    assert len(headers) > 1
    assert {each.request.acks for each in requests.of(ApiKey.PRODUCE)} == {-1}


@pytest.mark.covers("S107")
def test_a_record_larger_than_the_topic_takes_fails_the_write(
    steps: SparkKafka, kafka: Cluster, topic: str
) -> None:
    name = f"{topic}-small"
    kafka.topic(name).create(1, configs={"max.message.bytes": "1000"})
    with pytest.raises(Exception, match="RecordTooLargeException"):
        steps.write(steps.spark.sql("select repeat('x', 2000) as value"), name)
    assert kafka.records(name) == []
    with pytest.raises(Exception, match=r"RecordTooLargeException.*max\.request\.size"):
        steps.write(steps.spark.sql("select repeat('x', 2000000) as value"), topic)
    assert kafka.records(topic) == []


@pytest.mark.covers("S43")
def test_the_sink_creates_a_topic_that_is_not_there(
    steps: SparkKafka, kafka: Cluster, topic: str
) -> None:
    name = f"{topic}-auto"
    steps.write(steps.spark.sql("select 'v' as value"), name)
    assert [record.value for record in kafka.expect_records(name, 1)] == [b"v"]


def test_an_idle_producer_is_closed_before_long(spark: SparkSession) -> None:
    """Spark would keep it for ten minutes, and longer than its cluster it would look for that."""
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "t"}
        frame = spark.range(3).selectExpr("cast(id as string) as value").coalesce(1)
        frame.write.format("kafka").options(**options).save()
        assert kafka.connections()
        wait_until(lambda: not kafka.connections())
