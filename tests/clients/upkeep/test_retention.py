"""Records that grow old, logs that grow large, and what consumers see of it."""

from __future__ import annotations

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.librdkafka import (
    TIMEOUT_S,
    delete_records,
    flush,
    offsets,
    open_consumer,
    poll,
    produce,
    read_all,
    settings,
    values,
)
from tests.support.request_log import RequestLog

VALUE = b"x" * 300_000  # four of them do not fit into a segment of 1 MiB
SEGMENT = {"segment.bytes": "1048576", "message.timestamp.type": "LogAppendTime"}


def fill(kafka: Cluster, topic: str, count: int) -> None:
    """Produce so many large records, each in a batch of its own."""
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=0, batch_num_messages=1))
    for _ in range(count):
        producer.produce(topic, VALUE, partition=0)
    flush(producer)


def bounds(kafka: Cluster, topic: str) -> tuple[int, int]:
    """What a consumer is told: the earliest offset and the one after the last."""
    with open_consumer(kafka.bootstrap_servers) as consumer:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
        return low, high


def segment_bases(kafka: Cluster, topic: str) -> list[int]:
    return kafka.call(
        lambda cluster: [
            segment.base_offset for segment in cluster.topics[topic].partitions[0].log.segments
        ]
    )


@pytest.mark.covers("S7")
def test_the_earliest_offset_rises_by_whole_segments_as_they_outlive_retention_ms(
    kafka: Cluster,
) -> None:
    kafka.topic("old").create(configs={**SEGMENT, "retention.ms": "3600000"})
    fill(kafka, "old", 4)
    kafka.clock.advance("50m")
    fill(kafka, "old", 3)
    assert segment_bases(kafka, "old") == [0, 3, 6]
    kafka.clock.advance("20m")
    # The segment of 3 to 5 has a record from before and two that are 20 minutes old.
    assert bounds(kafka, "old") == (3, 7)
    assert offsets(read_all(kafka.bootstrap_servers, "old", 4)) == [3, 4, 5, 6]
    kafka.clock.advance("1h")
    assert bounds(kafka, "old") == (7, 7)
    fill(kafka, "old", 1)
    assert bounds(kafka, "old") == (7, 8)


@pytest.mark.covers("S7")
def test_the_earliest_offset_rises_by_whole_segments_as_the_log_outgrows_retention_bytes(
    kafka: Cluster,
) -> None:
    kafka.topic("large").create(configs={**SEGMENT, "retention.bytes": "1000000"})
    fill(kafka, "large", 7)
    [gone] = kafka.topic("large").run_retention()
    assert (gone.segments_removed, gone.old_log_start_offset, gone.log_start_offset) == (1, 0, 3)
    assert 900_000 < gone.bytes_removed < 901_000
    assert bounds(kafka, "large") == (3, 7)
    assert kafka.topic("large").run_retention() == []


@pytest.mark.covers("S7")
def test_a_week_passes_in_no_time(kafka: Cluster) -> None:
    """With the defaults: seven days, looked at every five minutes."""
    produce(kafka.bootstrap_servers, "t", ["a", "b"])
    kafka.clock.advance("7d")
    assert bounds(kafka, "t") == (0, 2)
    kafka.clock.advance("5m")
    assert bounds(kafka, "t") == (2, 2)


@pytest.mark.covers("S6")
def test_the_log_start_inside_a_segment(kafka: Cluster) -> None:
    produce(kafka.bootstrap_servers, "t", (str(n) for n in range(1000)), batch_num_messages=100)
    assert delete_records(kafka.bootstrap_servers, "t", 500) == 500
    assert bounds(kafka, "t") == (500, 1000)
    assert segment_bases(kafka, "t") == [0]
    assert kafka.topic("t").run_retention() == []
    with open_consumer(kafka.bootstrap_servers, auto_offset_reset="error") as consumer:
        consumer.assign([TopicPartition("t", 0, 500)])
        assert offsets(poll(consumer, 500)) == list(range(500, 1000))
        consumer.assign([TopicPartition("t", 0, 499)])
        with pytest.raises(KafkaException) as caught:
            poll(consumer, 1)
        assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


# -- consumers that come too late ------------------------------------------------------------------


@pytest.fixture
def late(kafka: Cluster) -> str:
    """A group that has committed 5 in a topic whose log starts at 100 since."""
    kafka.topic("ran-away").create(configs={"retention.ms": "3600000"})
    produce(kafka.bootstrap_servers, "ran-away", [str(n) for n in range(100)])
    with open_consumer(kafka.bootstrap_servers, group_id="late") as consumer:
        consumer.commit(offsets=[TopicPartition("ran-away", 0, 5)], asynchronous=False)
    kafka.clock.advance("2h")
    produce(kafka.bootstrap_servers, "ran-away", ["100", "101"])
    assert bounds(kafka, "ran-away") == (100, 102)
    return "ran-away"


def resume(consumer: Consumer, topic: str) -> None:
    """Go on at what was committed."""
    [committed] = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
    assert committed.offset == 5
    consumer.assign([committed])


@pytest.mark.covers("S128")
def test_a_late_consumer_goes_on_at_the_log_start(
    kafka: Cluster, late: str, log: RequestLog
) -> None:
    with open_consumer(kafka.bootstrap_servers, group_id="late") as consumer:
        resume(consumer, late)
        found = poll(consumer, 2)
    assert (offsets(found), values(found)) == ([100, 101], ["100", "101"])
    errors = [
        partition.error_code
        for exchange in log.of(ApiKey.FETCH)
        for topic in exchange.response.responses
        for partition in topic.partitions
    ]
    assert errors.count(ErrorCode.OFFSET_OUT_OF_RANGE) == 1


@pytest.mark.covers("S128")
def test_a_late_consumer_goes_on_at_the_log_end(kafka: Cluster, late: str) -> None:
    config = {"group_id": "late", "auto_offset_reset": "latest"}
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        resume(consumer, late)
        # Its Fetch asks for what comes next: it has been told where the end is.
        kafka.journal.wait(
            kind="request",
            api="Fetch",
            topic=late,
            where={"topics[].partitions[].fetch_offset": 102},
        )
        produce(kafka.bootstrap_servers, late, ["102"])
        assert values(poll(consumer, 1)) == ["102"]


@pytest.mark.covers("S128")
def test_a_late_consumer_that_wants_to_know_is_told(kafka: Cluster, late: str) -> None:
    config = {"group_id": "late", "auto_offset_reset": "error"}
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        resume(consumer, late)
        with pytest.raises(KafkaException) as caught:
            poll(consumer, 1)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


@pytest.mark.covers("S128", "S339")
def test_what_a_checkpoint_needs_is_gone_and_the_brokers_say_so(kafka: Cluster, late: str) -> None:
    """The broker's side of Spark's failOnDataLoss: earliest is above the checkpoint, and below it
    nothing is found, by offset or by time.
    """
    assert bounds(kafka, late) == (100, 102)
    with open_consumer(kafka.bootstrap_servers) as consumer:
        by_time = consumer.offsets_for_times([TopicPartition(late, 0, 0)], TIMEOUT_S)
        assert [each.offset for each in by_time] == [100]
        consumer.assign([TopicPartition(late, 0, OFFSET_BEGINNING)])
        assert offsets(poll(consumer, 2)) == [100, 101]


@pytest.mark.covers("S128")
def test_retention_overtakes_a_consumer_that_is_reading(kafka: Cluster) -> None:
    kafka.topic("fleeting").create(configs={"retention.ms": "60000"})
    with open_consumer(kafka.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("fleeting", 0, 0)])
        for number in range(3):
            produce(kafka.bootstrap_servers, "fleeting", [str(number)])
            assert values(poll(consumer, 1)) == [str(number)]
            kafka.clock.advance("1h")
            assert bounds(kafka, "fleeting") == (number + 1, number + 1)
