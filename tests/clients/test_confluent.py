"""confluent-kafka: producing, and reading without the help of a group."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.support.librdkafka import (
    TIMEOUT_S,
    Delivery,
    create_topic,
    delete_records,
    delete_topic,
    flush,
    offsets,
    open_consumer,
    poll,
    produce,
    read_all,
    settings,
    values,
    wait_until_fetching,
)

TEN = [str(n) for n in range(10)]


# -- producing -------------------------------------------------------------------------------------


@pytest.mark.covers("S1", "S99")
@pytest.mark.parametrize("acks", ["1", "all"])
def test_the_broker_tells_the_offset_of_an_acknowledged_record(
    bootstrap_servers: str, topic: str, acks: str
) -> None:
    """Ten records end at offset 9, and the log end is the offset after that."""
    assert produce(bootstrap_servers, topic, TEN, acks=acks).offsets == list(range(10))
    with open_consumer(bootstrap_servers) as consumer:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    assert end == (0, 10)


@pytest.mark.covers("S99")
def test_without_acknowledgement_there_is_no_offset(bootstrap_servers: str, topic: str) -> None:
    """With acks=0 nobody tells where a record went, and yet it is there."""
    delivery = produce(bootstrap_servers, topic, TEN, acks=0)
    assert {message.offset() for message in delivery.messages} == {None}
    assert values(read_all(bootstrap_servers, topic, 10)) == TEN


@pytest.mark.covers("S96", "S116")
def test_an_idempotent_producer_reports_in_the_order_of_sending(
    bootstrap_servers: str, topic: str
) -> None:
    sent = [str(n) for n in range(1000)]
    delivery = produce(
        bootstrap_servers, topic, sent, enable_idempotence=True, linger_ms=0, batch_num_messages=10
    )
    assert delivery.offsets == list(range(1000))
    assert values(read_all(bootstrap_servers, topic, 1000)) == sent


@pytest.mark.covers("S98")
def test_records_are_there_once_flush_returns(bootstrap_servers: str, topic: str) -> None:
    """Before, they may still be in the client: a linger of a minute holds them there."""
    producer = Producer(settings(bootstrap_servers, linger_ms=60_000))
    for value in TEN:
        producer.produce(topic, value, partition=0)
    assert len(producer) == 10
    flush(producer)
    assert len(producer) == 0
    assert values(read_all(bootstrap_servers, topic, 10)) == TEN


@pytest.mark.covers("S107")
def test_a_record_that_the_topic_does_not_take_fails_alone(
    bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name, max_message_bytes="1000")
    producer = Producer(settings(bootstrap_servers, linger_ms=0, batch_num_messages=1))
    delivery = Delivery()
    for value in ("small", "x" * 2000, "small again"):
        producer.produce(name, value, on_delivery=delivery, partition=0)
    flush(producer)
    assert [error.code() for error in delivery.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert values(read_all(bootstrap_servers, name, 2)) == ["small", "small again"]


@pytest.mark.covers("S122")
def test_a_topic_may_stamp_records_with_the_time_of_the_append(
    bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name, message_timestamp_type="LogAppendTime")
    begun_ms = int(time.time() * 1000)
    producer = Producer(settings(bootstrap_servers))
    delivery = Delivery()
    producer.produce(name, "v", timestamp=begun_ms - 60_000, on_delivery=delivery)
    flush(producer)
    [read] = read_all(bootstrap_servers, name, 1)
    for kind, at_ms in (delivery.messages[0].timestamp(), read.timestamp()):
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert begun_ms <= at_ms <= time.time() * 1000


def test_the_time_of_the_producer_is_kept_otherwise(bootstrap_servers: str, topic: str) -> None:
    """A year ago is fine as well: message.timestamp.before.max.ms has no limit by default."""
    then_ms = int(time.time() * 1000) - 365 * 86_400_000
    producer = Producer(settings(bootstrap_servers))
    producer.produce(topic, "v", timestamp=then_ms)
    flush(producer)
    [read] = read_all(bootstrap_servers, topic, 1)
    assert read.timestamp() == (TIMESTAMP_CREATE_TIME, then_ms)


def test_a_time_too_far_ahead_is_refused(bootstrap_servers: str, topic: str) -> None:
    """message.timestamp.after.max.ms is an hour."""
    producer = Producer(settings(bootstrap_servers))
    delivery = Delivery()
    tomorrow_ms = int(time.time() * 1000) + 86_400_000
    producer.produce(topic, "v", timestamp=tomorrow_ms, on_delivery=delivery)
    flush(producer)
    assert [error.name() for error in delivery.errors] == ["INVALID_TIMESTAMP"]


def test_a_partition_that_is_not_there_fails_its_record(bootstrap_servers: str, topic: str) -> None:
    producer = Producer(settings(bootstrap_servers))
    delivery = Delivery()
    producer.list_topics(topic, TIMEOUT_S)  # so that it knows
    try:
        producer.produce(topic, "v", partition=7, on_delivery=delivery)
        flush(producer)
        [error] = delivery.errors
    except KafkaException as exception:
        error = exception.args[0]
    assert error.code() == KafkaError._UNKNOWN_PARTITION


@pytest.mark.covers("S102")
@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "zstd"])
def test_a_topic_that_recompresses_is_read_back(
    bootstrap_servers: str, name: str, codec: str
) -> None:
    create_topic(bootstrap_servers, name, compression_type=codec)
    produce(bootstrap_servers, name, TEN, compression_type="lz4")
    assert values(read_all(bootstrap_servers, name, 10)) == TEN


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.covers("S18")
def test_a_partition_that_was_never_written_ends_at_0(bootstrap_servers: str, topic: str) -> None:
    with open_consumer(bootstrap_servers) as consumer:
        partition = TopicPartition(topic, 0)
        assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 0)
        assert consumer.offsets_for_times([TopicPartition(topic, 0, 1)], TIMEOUT_S)[0].offset == -1
        consumer.assign([partition])
        wait_until_fetching(consumer, topic, 0)


@pytest.mark.covers("S20")
def test_after_seeking_to_the_end_only_new_records_come(bootstrap_servers: str, topic: str) -> None:
    produce(bootstrap_servers, topic, TEN)
    with open_consumer(bootstrap_servers) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        wait_until_fetching(consumer, topic, 10)
        produce(bootstrap_servers, topic, ["new", "newer"])
        assert [(m.offset(), m.value()) for m in poll(consumer, 2)] == [
            (10, b"new"),
            (11, b"newer"),
        ]


@pytest.mark.covers("S17", "S21", "S26", "S129")
def test_a_seek_may_lead_into_a_batch(bootstrap_servers: str, topic: str) -> None:
    """The position is the offset of the next record to hand out."""
    produce(bootstrap_servers, topic, TEN)
    with open_consumer(bootstrap_servers) as consumer:
        partition = TopicPartition(topic, 0, 7)
        consumer.assign([partition])
        assert offsets(poll(consumer, 3)) == [7, 8, 9]
        assert consumer.position([partition])[0].offset == 10
        consumer.seek(TopicPartition(topic, 0, 3))
        assert offsets(poll(consumer, 2)) == [3, 4]
        assert consumer.position([partition])[0].offset == 5
        consumer.seek(TopicPartition(topic, 0, 9))  # the end less one: the last record
        assert offsets(poll(consumer, 1)) == [9]


@pytest.mark.covers("S27")
def test_a_time_leads_to_the_first_record_at_or_after_it(
    bootstrap_servers: str, topic: str
) -> None:
    """Not the first batch: the search goes into batches, and times need not rise."""
    start_ms = int(time.time() * 1000) - 100_000
    producer = Producer(settings(bootstrap_servers, linger_ms=50))
    for after_ms in (0, 1000, 500, 3000):
        producer.produce(topic, "v", partition=0, timestamp=start_ms + after_ms)
    flush(producer)
    with open_consumer(bootstrap_servers) as consumer:
        found = {
            after_ms: consumer.offsets_for_times(
                [TopicPartition(topic, 0, start_ms + after_ms)], TIMEOUT_S
            )[0].offset
            for after_ms in (-1, 0, 1, 1000, 1001, 3000, 3001)
        }
    # librdkafka's -1 (OFFSET_END) stands for "no such record".
    assert found == {-1: 0, 0: 0, 1: 1, 1000: 1, 1001: 3, 3000: 3, 3001: -1}


@pytest.mark.covers("S127")
@pytest.mark.parametrize(("reset", "got"), [("earliest", TEN), ("latest", [])])
def test_without_a_committed_offset_the_reset_policy_decides(
    bootstrap_servers: str, topic: str, reset: str, got: list[str]
) -> None:
    produce(bootstrap_servers, topic, TEN)
    with open_consumer(bootstrap_servers, group_id=topic, auto_offset_reset=reset) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        if reset == "latest":
            wait_until_fetching(consumer, topic, 10)
        assert values(poll(consumer, len(got))) == got
        produce(bootstrap_servers, topic, ["new"])
        assert values(poll(consumer, 1)) == ["new"]


@pytest.mark.covers("S127")
def test_without_a_reset_policy_the_consumer_says_that_it_has_no_offset(
    bootstrap_servers: str, topic: str
) -> None:
    produce(bootstrap_servers, topic, TEN)
    with open_consumer(bootstrap_servers, group_id=topic, auto_offset_reset="error") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(KafkaException) as failure:
            poll(consumer, 1)
    assert failure.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


@pytest.mark.covers("S5", "S128")
@pytest.mark.parametrize("reset", ["earliest", "latest", "error"])
def test_a_position_that_was_deleted_is_reset_by_policy(
    bootstrap_servers: str, topic: str, reset: str
) -> None:
    """DeleteRecords moved the log start to 6 while the consumer stood at 2."""
    produce(bootstrap_servers, topic, TEN)
    assert delete_records(bootstrap_servers, topic, 6) == 6
    with open_consumer(bootstrap_servers, auto_offset_reset=reset) as consumer:
        consumer.assign([TopicPartition(topic, 0, 2)])
        if reset == "error":
            with pytest.raises(KafkaException) as failure:
                poll(consumer, 1)
            assert failure.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
        elif reset == "earliest":
            assert offsets(poll(consumer, 4)) == [6, 7, 8, 9]
        else:
            wait_until_fetching(consumer, topic, 10)
            produce(bootstrap_servers, topic, ["new"])
            assert offsets(poll(consumer, 1)) == [10]


@pytest.mark.covers("S130")
def test_a_poll_waits_for_data_and_returns_when_it_comes(
    bootstrap_servers: str, topic: str
) -> None:
    with open_consumer(bootstrap_servers, fetch_wait_max_ms=20_000) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        begun_s = time.monotonic()
        assert consumer.poll(0.5) is None
        assert 0.5 <= time.monotonic() - begun_s < 10
        produce(bootstrap_servers, topic, ["here"])  # while a Fetch waits at the broker
        begun_s = time.monotonic()
        assert values(poll(consumer, 1)) == ["here"]
        assert time.monotonic() - begun_s < 10


def test_a_paused_partition_gives_nothing_until_resumed(bootstrap_servers: str, name: str) -> None:
    create_topic(bootstrap_servers, name, 2)
    produce(bootstrap_servers, name, ["paused"], partition=0)
    produce(bootstrap_servers, name, ["other"], partition=1)
    paused, other = TopicPartition(name, 0, 0), TopicPartition(name, 1, 0)
    with open_consumer(bootstrap_servers) as consumer:
        consumer.assign([paused, other])
        consumer.pause([paused])
        assert values(poll(consumer, 2, 0.7)) == ["other"]
        consumer.resume([paused])
        assert values(poll(consumer, 1)) == ["paused"]


@pytest.mark.covers("S136")
def test_a_topic_deleted_and_made_anew_is_read_from_the_reset_position(
    bootstrap_servers: str, topic: str
) -> None:
    """librdkafka fetches by topic id; the old id is unknown and it looks for the new one."""
    produce(bootstrap_servers, topic, TEN)
    config = {"topic_metadata_refresh_interval_ms": 100, "metadata_max_age_ms": 10_000}
    with open_consumer(bootstrap_servers, **config) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert values(poll(consumer, 10)) == TEN
        delete_topic(bootstrap_servers, topic)
        create_topic(bootstrap_servers, topic)
        produce(bootstrap_servers, topic, ["anew"])
        deadline = time.monotonic() + TIMEOUT_S
        found = None
        while found is None and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found = message
        assert found is not None
        assert (found.offset(), found.value()) == (0, b"anew")


@pytest.mark.covers("S140")
def test_a_batch_larger_than_every_limit_is_still_read(bootstrap_servers: str, topic: str) -> None:
    large = [letter * 5000 for letter in "xyz"]
    produce(bootstrap_servers, topic, large, linger_ms=0)
    limits = {
        "fetch_message_max_bytes": 100,
        "fetch_max_bytes": 1000,
        "message_max_bytes": 1000,
        "receive_message_max_bytes": 100_000,
    }
    assert values(read_all(bootstrap_servers, topic, 3, **limits)) == large
