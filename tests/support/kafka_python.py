"""What it takes to use kafka-python's consumer in a test without a race."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import RebalanceInProgressError

TIMEOUT_S = 20.0
# How long one of several polls waits.
POLL_MS = 50
SETTLING_POLL_MS = 200


def subscribe(consumer: KafkaConsumer, *topics: str, **listener: Any) -> None:
    """Subscribe, and wait for the topics' metadata.

    A leader that joins before it knows a topic's partitions assigns none of them, for good; and a
    member that hears of the topics' metadata after its join joins again.
    """
    consumer.subscribe(topics, **listener)
    for topic in topics:
        consumer.partitions_for_topic(topic)


def poll(consumer: KafkaConsumer, count: int, timeout_s: float = TIMEOUT_S) -> list[Any]:
    """`count` records, or fewer after the timeout."""
    deadline = time.monotonic() + timeout_s
    found: list[Any] = []
    while len(found) < count and time.monotonic() < deadline:
        for records in consumer.poll(POLL_MS, max_records=count - len(found)).values():
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


def settle(*consumers: KafkaConsumer, partitions: int = 4) -> list[list[int]]:
    """Poll all at once until they share all partitions of one topic; returns the shares.

    Each is polled in a thread of its own: members that take turns give up joins that wait for each
    other. Records that come meanwhile are lost to the caller.
    """
    polled = threading.Condition()
    done = False

    def poll_on(consumer: KafkaConsumer) -> None:
        while not done:
            consumer.poll(SETTLING_POLL_MS)
            with polled:
                polled.notify_all()

    def shares() -> list[list[int]]:
        return [sorted(tp.partition for tp in consumer.assignment()) for consumer in consumers]

    def settled() -> bool:
        found = shares()
        everything = sorted(index for share in found for index in share)
        return all(found) and everything == list(range(partitions))

    threads = [threading.Thread(target=poll_on, args=(each,)) for each in consumers]
    for thread in threads:
        thread.start()
    with polled:
        in_time = polled.wait_for(settled, TIMEOUT_S)
        done = True
    for thread in threads:
        thread.join()
    assert in_time, f"they own {shares()}"
    return shares()
