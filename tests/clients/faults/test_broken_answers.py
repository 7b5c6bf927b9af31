"""Answers that are not as they should be on the wire."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import KafkaException, TopicPartition

from mockbroker import Cluster
from tests.support.faulty import (
    begin,
    impatient_consumer,
    open_producer,
    polled,
    send,
    stored,
    warm,
)
from tests.support.librdkafka import TIMEOUT_S
from tests.support.waiting import wait_until


@pytest.mark.fault("truncate_reply")
@pytest.mark.parametrize("cut", [{"fraction": 0.5}, {"bytes": 3}, {"bytes": 20, "then": "reset"}])
def test_half_an_answer_is_none(kafka: Cluster, topic: str, cut: dict[str, object]) -> None:
    """The connection ends in the middle of it, so a plain producer sends again."""
    producer = open_producer(kafka)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"truncate_reply": cut}
    )
    assert send(producer, topic, "x").errors == []
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", "x", "x"]


@pytest.mark.fault("truncate_reply")
def test_a_client_waits_in_vain_for_the_other_half(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 1},
        do={"truncate_reply": {"fraction": 0.9, "then": "keep"}},
    )
    assert send(producer, topic, "x").errors == []
    assert stored(kafka, topic) == ["warm", "x", "x"]


@pytest.mark.fault("corrupt_reply")
@pytest.mark.parametrize(
    "how", ["wrong_size", "wrong_correlation_id", "garbage", "oversize", "bit_flips"]
)
def test_a_damaged_answer_is_not_believed(kafka: Cluster, topic: str, how: str) -> None:
    """The question fails, or is asked again; nobody crashes, and the next one is answered."""
    damage = {"how": how, "count": 400} if how == "bit_flips" else {"how": how}
    rule = kafka.faults.add(
        match={"api": "ListOffsets", "topic": topic}, do={"corrupt_reply": damage}
    )
    with impatient_consumer(kafka) as consumer:
        where = TopicPartition(topic, 0)

        def failed() -> bool:
            with pytest.raises(KafkaException):
                consumer.get_watermark_offsets(where, 0.8)
            return rule.hits > 0

        wait_until(failed, what="the damaged answer")
        rule.remove()
        assert consumer.get_watermark_offsets(where, TIMEOUT_S) == (0, 0)


@pytest.mark.fault("duplicate_reply")
def test_a_second_answer_to_the_same_request_is_ignored(kafka: Cluster, topic: str) -> None:
    """librdkafka counts it as one that belongs to no request."""
    counted: list[int] = []

    def note(text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        counted.append(sum(broker["rxcorriderrs"] for broker in brokers))

    producer = open_producer(kafka, stats_cb=note, statistics_interval_ms=20)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"duplicate_reply": 3}
    )
    assert send(producer, topic, "x", "y").errors == []
    wait_until(lambda: producer.poll(0.02) is not None and 2 in counted, what="the count")
    assert stored(kafka, topic) == ["warm", "x", "y"]


@pytest.mark.fault("reorder_replies")
def test_answers_in_another_order_find_their_requests(kafka: Cluster, topic: str) -> None:
    """The answer to the second request comes first."""
    producer = open_producer(kafka, socket_timeout_ms=60_000)
    warm(producer, topic, 0, 1)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic, "partition": 0},
        when={"times": 1},
        do={"reorder_replies": "1h"},
    )
    order: list[str] = []
    first = begin(producer, topic, "first", partition=0)
    rule.wait()
    producer.poll(0.05)
    assert first.messages == []
    producer.produce(topic, "second", partition=1, on_delivery=lambda *_: order.append("second"))
    polled(producer, first)
    wait_until(lambda: producer.poll(0.02) is not None and order == ["second"])
    assert first.errors == []
    assert stored(kafka, topic, 0) == ["warm", "first"]
    assert stored(kafka, topic, 1) == ["warm", "second"]


@pytest.mark.fault("reorder_replies")
def test_an_answer_does_not_wait_for_ever_for_the_next_one(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"reorder_replies": "50ms"})
    assert send(producer, topic, "x").errors == []
    assert stored(kafka, topic) == ["warm", "x"]
