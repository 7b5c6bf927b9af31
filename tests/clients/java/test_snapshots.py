"""Java's clients while their cluster goes back to a snapshot, and over the end of its process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.clients.java.steps import Peer, Steps
from tests.clients.java.test_consumer_protocol import open_member
from tests.support.tour import Tour

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

# What Java learns it learns from metadata, which it otherwise asks for every five minutes.
SOON = {"metadata_max_age_ms": 300, "reconnect_backoff_ms": 50, "retry_backoff_ms": 50}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3) as kafka:
        yield kafka


@pytest.fixture
def java(tour: Tour, kafka: Cluster) -> Iterator[Steps]:
    steps = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 3))
    yield steps
    steps.close_all()


def values(records: list[dict[str, object]]) -> list[object]:
    return [record["value"] for record in records]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_on_where_the_restored_log_ends(
    java: Steps, kafka: Cluster, protocol: str
) -> None:
    """The consumer was further than the log is now; leader epochs tell it (KIP-320)."""
    topic = java.topic(replicas=3)
    java.fill(topic, ["one"])
    if protocol == "classic":
        consumer = java.consumer("g", session_timeout_ms=6000, **SOON)
    else:
        consumer = open_member(java, "g", **SOON)
    java("subscribe", consumer, topics=[topic])
    assert values(java.poll(consumer, 1)) == ["one"]
    java("commit", consumer)
    snapshot = kafka.snapshot()
    java.fill(topic, ["lost", "lost too"])
    assert values(java.poll(consumer, 2)) == ["lost", "lost too"]
    kafka.restore(snapshot)
    java.fill(topic, ["next"])
    assert values(java.poll(consumer, 1))[-1] == "next"


def test_an_idempotent_producer_writes_on_after_a_restore(java: Steps, kafka: Cluster) -> None:
    """Its sequence is ahead of what the log knows: it takes a new epoch and goes on (KIP-360)."""
    topic = java.topic()
    producer = java.producer(**SOON)
    assert "error" not in java.send(producer, {"value": "kept"}, topic=topic)[0]
    snapshot = kafka.snapshot()
    for value in ("gone", "gone too"):
        java.send(producer, {"value": value}, topic=topic)
    kafka.restore(snapshot)
    outcome = java.send(producer, {"value": "after"}, topic=topic)[0]
    if "error" in outcome:  # the one that finds out may fail, those after it do not
        outcome = java.send(producer, {"value": "after"}, topic=topic)[0]
    assert "error" not in outcome
    assert [record.value for record in kafka.records(topic)] == [b"kept", b"after"]
