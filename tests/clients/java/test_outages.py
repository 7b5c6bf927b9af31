"""Java's clients while brokers are dead, silent or cut off, as in outages that people remember.

Times are scaled: 30 s and 60 s in the reports are one or two here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from tests.clients.java.steps import Peer, Steps
from tests.support.java_pipe import JavaError
from tests.support.librdkafka import addresses
from tests.support.tour import Tour
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

TOPIC = "T-TRADE-1"
NEVER_MS = 3_600_000


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    """Brokers 0, 1 and 2; the coordinator is broker 1, the topic has three partitions."""
    with Cluster(brokers=3, node_ids=[0, 1, 2], configs={"min.insync.replicas": "2"}) as kafka:

        def begin(cluster) -> None:  # type: ignore[no-untyped-def]
            spread = {p: [(p + i) % 3 for i in range(3)] for p in range(3)}
            cluster.create_topic(TOPIC, assignments=spread)
            cluster.ensure_internal_topic("__consumer_offsets")
            cluster.move_coordinator("g", 1)

        kafka.call(begin)
        yield kafka


@pytest.fixture
def java(tour: Tour, kafka: Cluster) -> Iterator[Steps]:
    steps = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 3))
    yield steps
    for node_id in (0, 1, 2):  # so that closing waits for nobody
        if kafka.call(lambda c, n=node_id: c.brokers[n].state) == "paused":  # type: ignore[misc]
            kafka.broker(node_id).resume()
    steps.close_all()


def partition(index: int) -> str:
    return f"{TOPIC}-{index}"


def in_time(ask: Callable[[], Any]) -> Any:
    """An answer, None where a client's short timeout ends first: the machine may be busy."""
    try:
        return ask()
    except JavaError as late:
        if late.name != "TimeoutException":
            raise
        return None


def cut(kafka: Cluster, node_id: int) -> None:
    """Nobody hears of a broker any more, and nobody notices."""
    kafka.broker(node_id).pause(fence_after=NEVER_MS)


@pytest.mark.covers("S145", "S268")
def test_a_group_forms_and_the_ends_of_a_partition_are_not_to_be_had(
    java: Steps, kafka: Cluster
) -> None:
    """Broker 0 is dead, broker 2 is cut off. Broker 1 lets a member join and assigns it everything;
    what the member then asks of broker 2 fails after its time, with Java's own words.
    """
    java.fill(TOPIC, ["a"], partition=2)
    consumer = java.consumer("g", default_api_timeout_ms=1500, request_timeout_ms=1000)
    kafka.broker(0).stop(how="unclean")
    java("subscribe", consumer, topics=[TOPIC])
    assert len(java.settle(consumer, partitions=3)[consumer]) == 3
    cut(kafka, 2)
    with pytest.raises(JavaError, match=r"Failed to get offsets by times in \d+ms") as late:
        java("endOffsets", consumer, partitions=[partition(2)])
    assert late.value.name == "TimeoutException"

    def end(index: int) -> int | None:
        ends = in_time(lambda: java("endOffsets", consumer, partitions=[partition(index)]))
        return ends and ends[partition(index)]

    java.until(lambda: end(1) == 0)
    kafka.broker(2).resume()
    java.until(lambda: end(2) == 1)


@pytest.mark.covers("S146", "S123")
def test_without_metadata_partitions_cannot_be_told(java: Steps, kafka: Cluster) -> None:
    for node_id in (0, 1, 2):
        cut(kafka, node_id)
    consumer = java.consumer(default_api_timeout_ms=1000, request_timeout_ms=700)
    with pytest.raises(JavaError, match="Timeout expired while fetching topic metadata") as late:
        java("partitionsFor", consumer, topic=TOPIC)
    assert late.value.name == "TimeoutException"
    producer = java.producer(max_block_ms=700)
    (sent,) = java.send(producer, {"value": "x"}, topic=TOPIC)
    assert sent["error"] == "TimeoutException"
    assert f"Topic {TOPIC} not present in metadata after 700 ms" in sent["message"]
    for node_id in (0, 1, 2):
        kafka.broker(node_id).resume()
    java.until(lambda: in_time(lambda: java("partitionsFor", consumer, topic=TOPIC)))


@pytest.mark.covers("S274")
def test_brokers_that_stop_one_after_the_other_take_partitions_with_them(
    java: Steps, kafka: Cluster
) -> None:
    """2 stops, which is fine; 0 stops, and what only those two had has no leader; 2 comes back and
    is not in sync, so it still has none. Only 0 heals it, or an election that may lose something.
    """
    kafka.call(lambda cluster: cluster.create_topic("pair", assignments={0: [0, 2]}))
    java.fill("pair", ["a"])
    kafka.broker(2).stop(how="unclean")
    producer = java.producer(acks="1", enable_idempotence="false", retries=0)
    assert java.send(producer, {"value": "b"}, topic="pair")[0].get("offset") == 1
    kafka.broker(0).stop(how="unclean")

    def leader() -> int | None:
        (found,) = java.described("pair")
        told: int | None = found["partitions"][0]["leader"]
        return None if told == -1 else told

    assert leader() is None
    kafka.broker(2).start()
    assert leader() is None
    kafka.broker(0).start()
    wait_until(lambda: leader() == 0)
    assert [each["value"] for each in java.read_all("pair", 2)] == ["a", "b"]


@pytest.mark.covers("S276")
def test_a_client_that_is_restarted_too_soon_fails_and_the_next_one_does_not(
    java: Steps, kafka: Cluster
) -> None:
    """The old member was just removed, and the broker that the new one begins with is cut off: it
    gives up after its 60 s (one here), in Java's words. The second start finds it back.
    """
    first = java.consumer("g")
    java("subscribe", first, topics=[TOPIC])
    java.settle(first, partitions=3)
    cut(kafka, 2)
    kafka.act("kick_member", group="g")
    impatient: dict[str, object] = {
        "bootstrap_servers": addresses(kafka, 2),
        "default_api_timeout_ms": 1000,
        "request_timeout_ms": 700,
    }
    second = java.consumer("g", **impatient)
    with pytest.raises(JavaError, match="Timeout expired while fetching topic metadata") as late:
        java("partitionsFor", second, topic=TOPIC)
    assert late.value.name == "TimeoutException"
    java.close(second)
    kafka.broker(2).resume()
    third = java.consumer("g", **impatient)
    java.until(lambda: len(in_time(lambda: java("partitionsFor", third, topic=TOPIC)) or ()) == 3)
    java("subscribe", third, topics=[TOPIC])
    java.close(first)
    assert len(java.settle(third, partitions=3)[third]) == 3


@pytest.mark.covers("S215")
def test_a_restore_in_the_callback_that_outlasts_max_poll_interval_ms_costs_the_membership(
    java: Steps, kafka: Cluster
) -> None:
    """Topics that the callback looks up are deleted, and each look takes its whole timeout. The
    member has left before the callback is over. A longer interval cures it. (Five minutes each in
    the report, here half a second; several looks leave the heartbeat thread its time.)
    """
    gone = [f"gone-{number}-0" for number in range(5)]
    for longest_ms, leaves in ((500, True), (60_000, False)):
        group = java.unique("restoring")
        consumer = java.consumer(
            group,
            max_poll_interval_ms=longest_ms,
            default_api_timeout_ms=500,
            request_timeout_ms=500,
            allow_auto_create_topics="false",
        )
        mark = kafka.journal.last_seq
        java("subscribe", consumer, topics=[TOPIC], restore=gone)
        looked: list[list[object]] = []

        def over(consumer: str = consumer, looked: list[list[object]] = looked) -> bool:
            java.poll(consumer, 1, timeout_ms=50)
            looked.extend(each for each in java("events", consumer) if each[0] == "timed out")
            return len(looked) >= len(gone)

        wait_until(over, what="the end of the callback")
        assert [each[1] for each in looked[: len(gone)]] == gone
        ended_ms = looked[len(gone) - 1][2]
        left = kafka.journal.events(
            kind="request", api="LeaveGroup", client_id=consumer, after_seq=mark
        )
        before = [each for each in left if each.real_ns / 1e6 < ended_ms]  # type: ignore[operator]
        assert bool(before) is leaves
        java.close(consumer)
