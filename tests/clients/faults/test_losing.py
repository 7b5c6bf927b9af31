"""Requests and answers that get lost, and connections that end: what a producer makes of it."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from tests.support.faulty import open_producer, send, stored, warm


@pytest.mark.fault("drop_reply")
@pytest.mark.parametrize("then", ["keep", "close", "reset"])
def test_a_lost_ack_makes_a_plain_producer_write_twice(
    kafka: Cluster, topic: str, then: str
) -> None:
    """It was applied, the producer never learns, and sends it again."""
    producer = open_producer(kafka)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"drop_reply": then}
    )
    delivery = send(producer, topic, "lost")
    assert delivery.errors == []
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", "lost", "lost"]


@pytest.mark.fault("drop_reply")
def test_a_lost_ack_costs_an_idempotent_producer_nothing(kafka: Cluster, topic: str) -> None:
    """The broker knows the sequence number of the second attempt, and answers as the first time."""
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"skip": 1, "times": 1},
        do={"drop_reply": "reset"},
    )
    delivery = send(producer, topic, "a", "b", "c")
    assert delivery.errors == []
    assert delivery.offsets == [1, 2, 3]
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", "a", "b", "c"]


@pytest.mark.fault("drop_request")
def test_a_request_that_is_dropped_is_never_applied(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"drop_request": None}
    )
    assert send(producer, topic, "again").errors == []
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", "again"]


@pytest.mark.fault("close")
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize(("phase", "copies"), [("before", 1), ("after", 2)])
def test_a_connection_that_ends_before_or_after_the_work(
    kafka: Cluster, topic: str, how: str, phase: str, copies: int
) -> None:
    """Only what was not applied may be sent again without harm."""
    producer = open_producer(kafka)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 1},
        do={"close": {"phase": phase, "how": how}},
    )
    assert send(producer, topic, "x").errors == []
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", *["x"] * copies]
