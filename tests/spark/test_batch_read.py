"""Spark's batch reads: what comes, from which offsets, and how it is decoded."""

from __future__ import annotations

import json
import time

import pytest

from mockbroker import Cluster
from mockbroker_protocol.records import BatchHeader, CompressionType
from tests.spark.steps import SparkKafka, sorted_reads
from tests.support.librdkafka import LINGER_MS

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

EARLIEST, LATEST = -2, -1


@pytest.mark.covers("S328")
def test_a_read_of_all_partitions_returns_every_record_where_it_is_stored(
    steps: SparkKafka, topic: str, offset_fetching: str
) -> None:
    for partition in range(4):
        values = [f"{partition} {n}" for n in range(50 * (partition + 1))]
        steps.fill(topic, values, partition=partition)
    assert sorted_reads(steps.read(topic).collect()) == steps.stored(topic)


@pytest.mark.covers("S18")
def test_a_topic_that_was_never_written_is_read_as_empty(
    steps: SparkKafka, topic: str, offset_fetching: str
) -> None:
    assert steps.read(topic).collect() == []


@pytest.mark.covers("S317")
def test_keys_values_headers_and_timestamps_come_as_they_were_sent(
    steps: SparkKafka, topic: str
) -> None:
    """A null is not an empty value, neither in keys, values nor headers."""
    now_ms = int(time.time() * 1000)
    headers = [("trace", b"1"), ("trace", b"\xff"), ("empty", b""), ("null", None)]
    steps.fill(topic, ["v"], key="k", headers=headers, timestamp=now_ms - 5, partition=0)
    steps.fill(topic, [None], key="dead", partition=1)
    steps.fill(topic, [""], key="", partition=2)
    steps.fill(topic, ["no key"], partition=3)
    frame = steps.read(topic, includeHeaders=True).orderBy("partition")
    found = frame.selectExpr("*", "unix_millis(timestamp) as ms").collect()
    assert [(row.key, row.value) for row in found] == [
        (b"k", b"v"),
        (b"dead", None),
        (b"", b""),
        (None, b"no key"),
    ]
    assert [tuple(header) for header in found[0].headers] == headers
    assert found[0].ms == now_ms - 5
    assert [row.headers for row in found[1:]] == [None, None, None]
    assert {(row.topic, row.timestampType) for row in found} == {(topic, 0)}


@pytest.mark.covers("S122")
def test_log_append_time_shows_as_timestamp_type_1(steps: SparkKafka, topic: str) -> None:
    name = f"{topic}-log-append"
    steps.kafka.topic(name).create(1, configs={"message.timestamp.type": "LogAppendTime"})
    begun_ms = int(time.time() * 1000)
    steps.fill(name, ["v"], timestamp=begun_ms - 60_000)
    [row] = steps.read(name).selectExpr("timestampType", "unix_millis(timestamp) as ms").collect()
    assert row.timestampType == 1
    assert begun_ms <= row.ms <= time.time() * 1000


@pytest.mark.covers("S93")
def test_an_integer_key_is_decoded_by_its_four_bytes(steps: SparkKafka, topic: str) -> None:
    """Java's IntegerSerializer writes four bytes, most significant first."""
    for key in (1, 258, 2**31 - 1):
        steps.fill(topic, [f"value {key}"], key=key.to_bytes(4, "big"))
    decoded = steps.read(topic).selectExpr(
        "cast(conv(hex(key), 16, 10) as int) as key", "cast(value as string) as value"
    )
    assert sorted(map(tuple, decoded.collect())) == [
        (1, "value 1"),
        (258, "value 258"),
        (2**31 - 1, f"value {2**31 - 1}"),
    ]


@pytest.mark.covers("S94")
def test_json_values_become_columns_and_malformed_ones_nulls(steps: SparkKafka, topic: str) -> None:
    users = [{"name": "Ann", "age": 7, "sex": "f"}, {"name": "Bob", "age": 8, "sex": "m"}]
    steps.fill(topic, [*map(json.dumps, users), "{no json"])
    parsed = steps.read(topic).selectExpr(
        "from_json(cast(value as string), 'name string, age int, sex string') as user"
    )
    rows = parsed.select("user.*").collect()
    assert sorted(tuple(row) for row in rows if row.name) == [("Ann", 7, "f"), ("Bob", 8, "m")]
    assert sum(row.name is None for row in rows) == 1


@pytest.mark.covers("S101", "S326")
def test_batches_of_every_codec_are_read(steps: SparkKafka, kafka: Cluster, topic: str) -> None:
    """librdkafka writes gzip, raw snappy, lz4 and zstd; the broker keeps them as they came."""
    values = [f"value {n} " * 10 for n in range(100)]
    codecs = ["gzip", "snappy", "lz4", "zstd"]
    for partition, codec in enumerate(codecs):
        config = {"compression.type": codec, "linger.ms": LINGER_MS}
        steps.fill(topic, values, partition=partition, config=config)
    stored = kafka.call(
        lambda cluster: [
            {BatchHeader(batch).codec for batch in partition.log.batches()}
            for partition in cluster.topics[topic].partitions
        ]
    )
    assert stored == [{CompressionType[codec.upper()]} for codec in codecs]
    assert sorted_reads(steps.read(topic).collect()) == [
        (partition, offset, value) for partition in range(4) for offset, value in enumerate(values)
    ]


# -- which offsets ---------------------------------------------------------------------------------


@pytest.mark.covers("S26")
def test_offsets_bound_each_partition_on_its_own(
    steps: SparkKafka, topic: str, offset_fetching: str
) -> None:
    """A range may begin and end inside a batch, which the broker hands out whole."""
    for partition in range(4):
        steps.fill(topic, map(str, range(10)), partition=partition, config={"linger.ms": LINGER_MS})
    starting = {topic: {"0": 3, "1": EARLIEST, "2": 9, "3": 10}}
    ending = {topic: {"0": 7, "1": 2, "2": LATEST, "3": LATEST}}
    frame = steps.read(topic, startingOffsets=starting, endingOffsets=ending)
    found = [(partition, offset) for partition, offset, _ in sorted_reads(frame.collect())]
    assert found == [(0, 3), (0, 4), (0, 5), (0, 6), (1, 0), (1, 1), (2, 9)]


@pytest.mark.covers("S27")
def test_timestamps_choose_the_first_record_at_or_after_them(
    steps: SparkKafka, topic: str, offset_fetching: str
) -> None:
    start_ms = int(time.time() * 1000) - 100_000
    for n in range(10):
        steps.fill(topic, [str(n)], partition=n % 2, timestamp=start_ms + 1000 * n)
    # Two partitions without a record have no offset for any time: Spark then takes the end.
    starting = {topic: {"0": start_ms + 3500, "1": start_ms + 5000, "2": start_ms, "3": start_ms}}
    ending = {topic: {"0": start_ms + 8000, "1": start_ms + 99_000, "2": start_ms, "3": start_ms}}
    frame = steps.read(
        topic,
        startingOffsetsByTimestamp=starting,
        endingOffsetsByTimestamp=ending,
        startingOffsetsByTimestampStrategy="latest",
    )
    found = sorted_reads(frame.collect())
    assert found == [(0, 2, "4"), (0, 3, "6"), (1, 2, "5"), (1, 3, "7"), (1, 4, "9")]


@pytest.mark.covers("S27")
def test_one_timestamp_may_serve_all_partitions(steps: SparkKafka, topic: str) -> None:
    start_ms = int(time.time() * 1000) - 100_000
    for n in range(8):
        steps.fill(topic, [str(n)], partition=n % 4, timestamp=start_ms + 1000 * n)
    frame = steps.read(topic, startingTimestamp=str(start_ms + 3000))
    values = sorted(value for _, _, value in sorted_reads(frame.collect()))
    assert values == ["3", "4", "5", "6", "7"]


def test_topics_can_be_chosen_by_pattern_or_partition(
    steps: SparkKafka, topic: str, other_topic: str
) -> None:
    steps.fill(topic, ["one", "two"], partition=1)
    steps.fill(other_topic, ["three"], partition=2)
    both = steps.read(subscribePattern=f"{topic}|{other_topic}").collect()
    assert sorted((row.topic, row.value.decode()) for row in both) == sorted(
        [(topic, "one"), (topic, "two"), (other_topic, "three")]
    )
    assigned = steps.read(assign={topic: [0, 2], other_topic: [2, 3]}).collect()
    assert [(row.topic, row.value.decode()) for row in assigned] == [(other_topic, "three")]


def test_one_partition_may_be_read_by_several_tasks(steps: SparkKafka, topic: str) -> None:
    """minPartitions makes Spark cut offset ranges, each of which a consumer of its own reads."""
    steps.fill(topic, map(str, range(100)), partition=0)
    frame = steps.read(topic, minPartitions=4)
    assert frame.rdd.getNumPartitions() >= 4
    assert sorted_reads(frame.collect()) == steps.stored(topic)


def test_a_topic_that_does_not_exist_fails_the_read_at_once(steps: SparkKafka, topic: str) -> None:
    """The admin client looks without creating, and does not wait for the topic to appear."""
    missing = f"{topic}-missing"
    with pytest.raises(Exception, match="UnknownTopicOrPartition"):
        steps.read(missing).collect()
    assert missing not in steps.kafka.call(lambda cluster: set(cluster.topics))


@pytest.mark.covers("S43")
def test_looking_up_offsets_with_a_consumer_creates_the_topic(
    steps: SparkKafka, topic: str, offsets_by_consumer: None
) -> None:
    """The deprecated way subscribes, and a Java consumer that subscribes creates topics."""
    missing = f"{topic}-missing"
    assert steps.read(missing).collect() == []
    assert missing in steps.kafka.call(lambda cluster: set(cluster.topics))
