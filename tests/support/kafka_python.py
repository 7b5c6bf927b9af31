"""What it takes to use kafka-python's consumer in a test without a race."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import RebalanceInProgressError
from kafka.net.compat import KafkaNetClient

TIMEOUT_S = 20.0
# How long one of several polls waits. A member that polls for less than a join takes may begin the
# join anew for ever on a busy machine: 20 ms took 0.5 to 20 s and more with a real broker, 500 ms
# never more than one poll.
POLL_MS = 500
ASIDE_POLL_MS = 200


@contextmanager
def refused_client() -> Iterator[dict[str, Any]]:
    """Settings for a client that cannot be made. kafka-python would not end its thread."""
    made: list[Any] = []

    def make(**config: Any) -> Any:
        made.append(KafkaNetClient(**config))
        return made[-1]

    try:
        yield {"kafka_client": make}
    finally:
        for each in made:
            each.close()


def subscribe(consumer: KafkaConsumer, *topics: str, **listener: Any) -> None:
    """Subscribe, and wait for the topics' metadata.

    A leader that joins before it knows a topic's partitions assigns none of them, for good; and a
    member that hears of the topics' metadata after its join joins again. A poll that ends in that
    second join leaves the member without heartbeats.
    """
    consumer.subscribe(topics, **listener)
    for topic in topics:
        consumer.partitions_for_topic(topic)


def poll(consumer: KafkaConsumer, count: int, timeout_s: float = TIMEOUT_S) -> list[Any]:
    """`count` records, or fewer after the timeout."""
    deadline = time.monotonic() + timeout_s
    found: list[Any] = []
    while len(found) < count and (left_s := deadline - time.monotonic()) > 0:
        poll_ms = min(POLL_MS, int(left_s * 1000) + 1)
        for records in consumer.poll(poll_ms, max_records=count - len(found)).values():
            found.extend(records)
    return found


def commit(consumer: KafkaConsumer, offsets: Any = None) -> None:
    """Commit, once the client no longer thinks that it has to join again.

    It does so after its first join if its metadata was renewed meanwhile. Without `offsets`, what
    the next polls bring would be committed as well.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            consumer.commit(offsets)
        except RebalanceInProgressError:
            assert time.monotonic() < deadline
            consumer.poll(POLL_MS)
        else:
            return


@contextmanager
def polled_aside(
    consumer: KafkaConsumer, notify: Callable[[], None] = lambda: None
) -> Iterator[list[Any]]:
    """Poll a consumer in a thread, for the length of the block; yields the records that come.

    A member that is polled in turn with others gives up joins that wait for these others.
    `notify` is called after each poll. Nothing else may use the consumer meanwhile, but for looking
    at its assignment.
    """
    records: list[Any] = []
    done = threading.Event()

    def poll_on() -> None:
        while not done.is_set():
            for found in consumer.poll(ASIDE_POLL_MS).values():
                records.extend(found)
            notify()

    thread = threading.Thread(target=poll_on)
    thread.start()
    try:
        yield records
    finally:
        done.set()
        thread.join()


def settle(*consumers: KafkaConsumer, partitions: int = 4) -> list[list[int]]:
    """Poll all at once until they share all partitions of one topic; returns the shares.

    Records that come meanwhile are lost to the caller.
    """
    polled = threading.Condition()

    def notify() -> None:
        with polled:
            polled.notify_all()

    def shares() -> list[list[int]]:
        return [sorted(tp.partition for tp in consumer.assignment()) for consumer in consumers]

    def settled() -> bool:
        found = shares()
        everything = sorted(index for share in found for index in share)
        return all(found) and everything == list(range(partitions))

    with ExitStack() as stack:
        for consumer in consumers:
            stack.enter_context(polled_aside(consumer, notify))
        with polled:
            in_time = polled.wait_for(settled, TIMEOUT_S)
    assert in_time, f"they own {shares()}"
    return shares()
