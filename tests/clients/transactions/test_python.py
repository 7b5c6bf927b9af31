"""Transactions of the Python clients: they commit, abort, fence, time out and carry offsets.

Against ours and, marked `real_kafka`, against Kafka itself.
"""

from __future__ import annotations

import time

import pytest
from confluent_kafka import TopicPartition

from tests.support.librdkafka import TIMEOUT_S, open_consumer, poll, values
from tests.support.python_transactions import Failed, Fenced, Make


def ends(bootstrap: str, topic: str) -> tuple[int, int]:
    """High watermark and last stable offset."""
    found = []
    for isolation in ("read_uncommitted", "read_committed"):
        with open_consumer(bootstrap, isolation_level=isolation) as consumer:
            found.append(consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)[1])
    return found[0], found[1]


def wait_for_ends(bootstrap: str, topic: str, *expected: int) -> None:
    deadline = time.monotonic() + 30
    while ends(bootstrap, topic) != expected:
        assert time.monotonic() < deadline, (ends(bootstrap, topic), expected)


def committed(bootstrap: str, topic: str) -> list[str]:
    """All that a read_committed consumer gets, up to the end of the partition."""
    end = ends(bootstrap, topic)[1]
    got = []
    with open_consumer(
        bootstrap,
        isolation_level="read_committed",
        enable_partition_eof=True,
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + TIMEOUT_S
        while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
            assert time.monotonic() < deadline, "it does not come to the end"
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                got.append(message)
            elif message is not None:
                break
    return values(got)


@pytest.mark.covers("S239", "S241", "S16")
def test_committed_records_arrive_and_aborted_ones_never_do(
    bootstrap_servers: str, make: Make, topic: str
) -> None:
    with make(bootstrap_servers, topic) as producer:
        offsets = []
        for number, end in enumerate(("commit", "abort", "commit", "abort")):
            producer.begin()
            offsets.append(producer.send(topic, f"{number} {end}"))
            getattr(producer, end)()
    assert offsets == [0, 2, 4, 6]
    wait_for_ends(bootstrap_servers, topic, 8, 8)
    assert committed(bootstrap_servers, topic) == ["0 commit", "2 commit"]
    with open_consumer(bootstrap_servers, isolation_level="read_uncommitted") as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert len(poll(consumer, 4)) == 4


@pytest.mark.covers("S8", "S9")
def test_an_open_transaction_is_not_seen(bootstrap_servers: str, make: Make, topic: str) -> None:
    with make(bootstrap_servers, topic) as producer:
        producer.begin()
        producer.send(topic, "a")
        assert ends(bootstrap_servers, topic) == (1, 0)
        assert committed(bootstrap_servers, topic) == []
        producer.commit()
        wait_for_ends(bootstrap_servers, topic, 2, 2)
    assert committed(bootstrap_servers, topic) == ["a"]


@pytest.mark.covers("S238", "S245")
def test_a_second_producer_fences_the_first(bootstrap_servers: str, make: Make, topic: str) -> None:
    with make(bootstrap_servers, topic) as first:
        first.begin()
        first.send(topic, "lost")
        with make(bootstrap_servers, topic) as second:
            with pytest.raises(Fenced):
                first.commit()
            second.begin()
            second.send(topic, "kept")
            second.commit()
    wait_for_ends(bootstrap_servers, topic, 4, 4)
    assert committed(bootstrap_servers, topic) == ["kept"]


@pytest.mark.covers("S251")
def test_who_takes_too_long_is_aborted(bootstrap_servers: str, make: Make, topic: str) -> None:
    """At the coordinator's next scan."""
    with make(bootstrap_servers, topic, timeout_ms=1000) as producer:
        producer.begin()
        producer.send(topic, "late")
        wait_for_ends(bootstrap_servers, topic, 2, 2)
        with pytest.raises(Failed):
            producer.commit()
    assert committed(bootstrap_servers, topic) == []


@pytest.mark.covers("S247")
def test_offsets_count_when_the_transaction_is_committed(
    bootstrap_servers: str, make: Make, topic: str, name: str
) -> None:
    group = f"group-{name}"
    partition = TopicPartition(topic, 0)
    with make(bootstrap_servers, topic) as producer:
        for end, offset, expected in (("abort", 3, -1001), ("commit", 5, 5), ("abort", 7, 5)):
            producer.begin()
            producer.send(topic, "v")
            producer.send_offset(group, topic, offset)
            getattr(producer, end)()
            with open_consumer(
                bootstrap_servers, group_id=group, isolation_level="read_committed"
            ) as consumer:
                assert consumer.committed([partition], TIMEOUT_S)[0].offset == expected
