"""Answers that take their time, and requests that somebody holds: on the cluster's own clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, TopicPartition

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

PATIENT = {"socket_timeout_ms": 60_000}


@pytest.fixture
def frozen(kafka: Cluster) -> Iterator[Cluster]:
    """A cluster whose clock stands still; it is on its way again afterwards."""
    kafka.clock.freeze()
    yield kafka
    kafka.faults.clear()
    kafka.clock.thaw()
    kafka.clock.advance("1m")


@pytest.mark.fault("delay")
@pytest.mark.parametrize(
    "delay", [{"by": "5s"}, {"uniform": ["4s", "5s"]}, {"lognormal": {"median": "4s", "sigma": 0}}]
)
def test_a_request_waits_on_the_cluster_clock(
    frozen: Cluster, topic: str, delay: dict[str, object]
) -> None:
    """However long that is: nothing is applied before, everything after."""
    producer = open_producer(frozen, **PATIENT)
    warm(producer, topic)
    rule = frozen.faults.add(match={"api": "Produce", "topic": topic}, do={"delay": delay})
    delivery = begin(producer, topic, "late")
    rule.wait()
    frozen.clock.advance("3s")
    assert stored(frozen, topic) == ["warm"]
    frozen.clock.advance("2s")
    polled(producer, delivery)
    assert stored(frozen, topic) == ["warm", "late"]


@pytest.mark.fault("delay")
def test_an_answer_waits_after_the_work_was_done(frozen: Cluster, topic: str) -> None:
    producer = open_producer(frozen, **PATIENT)
    warm(producer, topic)
    frozen.faults.add(
        match={"api": "Produce", "topic": topic}, do={"delay": {"by": "5s", "phase": "after"}}
    )
    delivery = begin(producer, topic, "late")
    wait_until(lambda: stored(frozen, topic) == ["warm", "late"])
    producer.poll(0.05)
    assert delivery.messages == []
    frozen.clock.advance("5s")
    polled(producer, delivery)


@pytest.mark.fault("throttle")
def test_a_throttled_client_is_told_and_then_not_heard(frozen: Cluster, topic: str) -> None:
    """The answer says for how long; what the client sends meanwhile is served afterwards."""
    told: list[float] = []
    producer = open_producer(
        frozen, throttle_cb=lambda event: told.append(event.throttle_time), **PATIENT
    )
    warm(producer, topic)
    frozen.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"throttle": "5s"}
    )
    assert send(producer, topic, "told").errors == []
    wait_until(lambda: producer.poll(0.02) is not None and told != [], what="the event")
    assert told == [5.0]
    delivery = begin(producer, topic, "waits")
    producer.poll(0.2)
    assert stored(frozen, topic) == ["warm", "told"]
    frozen.clock.advance("5s")
    polled(producer, delivery)
    assert stored(frozen, topic) == ["warm", "told", "waits"]


@pytest.mark.fault("slow")
def test_an_answer_comes_in_slices(frozen: Cluster, topic: str) -> None:
    """All but the last slice tell the client nothing."""
    producer = open_producer(frozen, **PATIENT)
    warm(producer, topic)
    rule = frozen.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 1},
        do={"slow": {"slice_bytes": 20, "pause": "5s"}},
    )
    delivery = begin(producer, topic, "x")
    rule.wait()
    frozen.clock.advance("5s")
    producer.poll(0.05)
    assert delivery.messages == []
    frozen.clock.advance("30s")
    polled(producer, delivery)


@pytest.mark.fault("slow")
def test_a_bandwidth_bounds_what_comes(frozen: Cluster, topic: str) -> None:
    producer = open_producer(frozen, **PATIENT)
    warm(producer, topic)
    send(producer, topic, "x" * 50_000)
    rule = frozen.faults.add(
        match={"api": "Fetch", "topic": topic}, do={"slow": {"bytes_per_s": 10_000}}
    )
    with impatient_consumer(frozen, **PATIENT) as consumer:
        consumer.assign([TopicPartition(topic, 0, 1)])
        consumer.poll(0)
        rule.wait()
        frozen.clock.advance("3s")
        assert consumer.poll(0.05) is None
        frozen.clock.advance("10s")
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert len(message.value()) == 50_000


# -- holding ---------------------------------------------------------------------------------------


@pytest.mark.fault("hold")
def test_a_request_that_is_held_can_be_seen_and_let_go(kafka: Cluster, topic: str) -> None:
    """It is not applied before."""
    producer = open_producer(kafka, **PATIENT)
    warm(producer, topic)
    kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"hold": "before"})
    delivery = begin(producer, topic, "held")
    held = kafka.faults.wait_held()
    assert held.phase == "before"
    assert held.request["acks"] == -1
    assert held.response is None
    assert stored(kafka, topic) == ["warm"]
    held.release()
    polled(producer, delivery)
    assert kafka.faults.held() == []
    assert stored(kafka, topic) == ["warm", "held"]


@pytest.mark.fault("hold")
def test_an_answer_that_is_held_can_be_edited(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka, **PATIENT)
    warm(producer, topic)
    kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"hold": {"phase": "after"}})
    delivery = begin(producer, topic, "held")
    held = kafka.faults.wait_held()
    assert stored(kafka, topic) == ["warm", "held"]
    [answered] = held.response["responses"]
    assert answered["partition_responses"][0]["base_offset"] == 1
    held.edit({"responses[].partition_responses[].base_offset": 77})
    held.release()
    assert polled(producer, delivery).offsets == [77]


@pytest.mark.fault("hold")
def test_a_request_that_is_held_can_be_edited_before_it_is_applied(
    kafka: Cluster, group: str, topic: str
) -> None:
    kafka.faults.add(match={"api": "OffsetCommit", "group": group}, do={"hold": {}})
    with impatient_consumer(kafka, group_id=group, **PATIENT) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=True)
        held = kafka.faults.wait_held()
        held.edit({"topics[].partitions[].committed_offset": 6})
        held.release()
        [committed] = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        assert committed.offset == 6


@pytest.mark.fault("hold")
def test_what_is_held_can_be_answered_with_an_error(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka, **PATIENT)
    warm(producer, topic)
    kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"hold": {}})
    delivery = begin(producer, topic, "refused")
    kafka.faults.wait_held().answer("TOPIC_AUTHORIZATION_FAILED")
    polled(producer, delivery)
    assert [e.code() for e in delivery.errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert stored(kafka, topic) == ["warm"]


@pytest.mark.fault("hold")
@pytest.mark.parametrize("way", ["drop", "close", "reset"])
def test_what_is_held_can_be_dropped_or_its_connection_closed(
    kafka: Cluster, topic: str, way: str
) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"hold": "after"}
    )
    delivery = begin(producer, topic, "x")
    held = kafka.faults.wait_held()
    if way == "drop":
        held.drop()
    else:
        held.close(reset=way == "reset")
    polled(producer, delivery)
    assert delivery.errors == []
    assert stored(kafka, topic) == ["warm", "x", "x"]


@pytest.mark.fault("hold", "barrier")
def test_a_rule_that_fires_while_another_holds(kafka: Cluster, group: str, topic: str) -> None:
    """Nobody may commit as long as a Produce is held."""
    kafka.faults.add(name="held-produce", match={"api": "Produce", "topic": topic}, do={"hold": {}})
    refusal = kafka.faults.add(
        match={"api": "OffsetCommit", "group": group},
        when={"barrier": "held-produce"},
        do={"error": "INVALID_COMMIT_OFFSET_SIZE"},
    )
    where = [TopicPartition(topic, 0, 5)]
    with impatient_consumer(kafka, group_id=group) as consumer:
        consumer.commit(offsets=where, asynchronous=False)
        assert refusal.hits == 0
        producer = open_producer(kafka, **PATIENT)
        delivery = begin(producer, topic, "x")
        held = kafka.faults.wait_held()
        consumer.commit(offsets=where, asynchronous=True)
        refusal.wait()
        held.release()
        polled(producer, delivery)
        consumer.commit(offsets=where, asynchronous=False)
        assert refusal.hits == 1


@pytest.mark.fault("hold")
def test_what_is_held_goes_on_by_itself_or_when_the_rule_goes(frozen: Cluster, topic: str) -> None:
    producer = open_producer(frozen, **PATIENT)
    warm(producer, topic)
    rule = frozen.faults.add(
        match={"api": "Produce", "topic": topic}, do={"hold": {"at_most": "10s"}}
    )
    first = begin(producer, topic, "first")
    frozen.faults.wait_held()
    frozen.clock.advance("10s")
    polled(producer, first)
    second = begin(producer, topic, "second")
    frozen.faults.wait_held()
    rule.remove()
    polled(producer, second)
    assert stored(frozen, topic) == ["warm", "first", "second"]
