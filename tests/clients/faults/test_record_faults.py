"""Records that are damaged, given twice, or left out on their way."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, TopicPartition

from mockbroker import Cluster
from tests.support.faulty import impatient_consumer, open_producer, send, stored, warm
from tests.support.librdkafka import offsets, poll, values


def with_values(kafka: Cluster, topic: str, *given: str, **config: object) -> None:
    send(open_producer(kafka, **config), topic, *given)


@pytest.mark.fault("corrupt_batch")
@pytest.mark.parametrize("how", ["crc", "magic", "codec"])
def test_a_poisoned_batch_in_a_fetch(kafka: Cluster, topic: str, how: str) -> None:
    """A consumer that checks does not hand it on; once it comes whole again, all is well."""
    with_values(kafka, topic, "a", "b")
    rule = kafka.faults.add(match={"api": "Fetch", "topic": topic}, do={"corrupt_batch": how})
    with impatient_consumer(kafka, check_crcs=True) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        rule.wait()
        got: list[str] = []
        try:
            got = values(poll(consumer, 2, timeout_s=1.0))
        except KafkaException as error:
            assert error.args[0] is not None  # noqa: PT017 - either way is one not to deliver
        assert "a" not in got
        rule.remove()
    with impatient_consumer(kafka, check_crcs=True) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 2)) == ["a", "b"]


@pytest.mark.fault("corrupt_batch")
def test_a_batch_that_is_damaged_on_its_way_in_is_refused(kafka: Cluster, topic: str) -> None:
    """CORRUPT_MESSAGE may be tried again, and then goes well."""
    producer = open_producer(kafka)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"corrupt_batch": "crc"}
    )
    assert send(producer, topic, "x").errors == []
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", "x"]


@pytest.mark.fault("corrupt_batch")
def test_a_batch_with_a_wrong_count_is_refused_for_good(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"corrupt_batch": "count"})
    assert [error.name() for error in send(producer, topic, "x").errors] == ["INVALID_RECORD"]
    assert stored(kafka, topic) == ["warm"]


@pytest.mark.fault("duplicate_records")
def test_records_come_twice(kafka: Cluster, topic: str) -> None:
    """Under the offsets that they have; a consumer that goes by those alone sees them twice."""
    with_values(kafka, topic, "a", "b")
    kafka.faults.add(match={"api": "Fetch", "topic": topic}, do={"duplicate_records": 2})
    with impatient_consumer(kafka) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = poll(consumer, 4)
        assert sorted(values(found)) == ["a", "a", "b", "b"]
        assert sorted(offsets(found)) == [0, 0, 1, 1]


@pytest.mark.fault("hide_records")
@pytest.mark.parametrize(
    ("hide", "seen"), [({"offsets": [1]}, ["a", "c", "d"]), ({"every": 2}, ["b", "d"])]
)
def test_records_are_missing_as_if_compacted_away(
    kafka: Cluster, topic: str, hide: dict[str, object], seen: list[str]
) -> None:
    with_values(kafka, topic, "a", "b", "c", "d")
    kafka.faults.add(match={"api": "Fetch", "topic": topic}, do={"hide_records": hide})
    with impatient_consumer(kafka) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, len(seen))) == seen
    assert stored(kafka, topic) == ["a", "b", "c", "d"]


@pytest.mark.fault("hide_records")
def test_records_are_missing_from_the_middle_of_a_compressed_batch(
    kafka: Cluster, topic: str
) -> None:
    producer = open_producer(kafka, linger_ms=500, compression_type="zstd")
    for value in ("a", "b", "c"):
        producer.produce(topic, value, partition=0)
    producer.flush()
    kafka.faults.add(match={"api": "Fetch", "topic": topic}, do={"hide_records": {"offsets": [1]}})
    with impatient_consumer(kafka) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 2)) == ["a", "c"]
