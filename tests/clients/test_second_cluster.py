"""Topics carried over into a second cluster, as clients of both see them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Message, Producer, TopicPartition

from mockbroker import Cluster
from tests.support.librdkafka import (
    TIMEOUT_S,
    delete_records,
    flush,
    open_consumer,
    poll,
    settings,
)
from tests.support.serving import Served

TOPICS = {"orders": 2, "ledger": 1}


class Seen(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: tuple[int, int]
    epoch: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]] | None


def seen(message: Message) -> Seen:
    return Seen(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp(),
        message.leader_epoch(),
        message.key(),
        message.value(),
        message.headers(),
    )


def fill(bootstrap: str) -> None:
    """Times of the past, headers, nulls, compression; a commit and an abort; a later log start."""
    producer = Producer(settings(bootstrap, compression_type="zstd", linger_ms=20))
    for number in range(20):
        producer.produce(
            "orders",
            None if number % 7 == 0 else f"value {number}",
            key=f"key {number % 5}",
            partition=number % 2,
            timestamp=1_600_000_000_000 + 1_000 * number,
            headers=[("trace", str(number).encode())],
        )
    flush(producer)
    transactional = Producer(settings(bootstrap, transactional_id="booking"))
    transactional.init_transactions(TIMEOUT_S)
    for kept in (True, False, True):
        transactional.begin_transaction()
        transactional.produce("ledger", f"kept: {kept}", partition=0)
        transactional.flush(TIMEOUT_S)
        if kept:
            transactional.commit_transaction(TIMEOUT_S)
        else:
            transactional.abort_transaction(TIMEOUT_S)
    delete_records(bootstrap, "orders", 3)


def look(bootstrap: str, isolation_level: str) -> tuple[list[Seen], dict[tuple[str, int], object]]:
    """Every record by topic, partition and offset, and where the logs begin and end."""
    partitions = [TopicPartition(t, index) for t, count in TOPICS.items() for index in range(count)]
    with open_consumer(bootstrap, isolation_level=isolation_level, group_id="g") as consumer:
        ends = {
            (each.topic, each.partition): consumer.get_watermark_offsets(each, TIMEOUT_S)
            for each in partitions
        }
        consumer.assign([TopicPartition(p.topic, p.partition, -2) for p in partitions])
        count = 17 + (2 if isolation_level == "read_committed" else 3)
        found = sorted(map(seen, poll(consumer, count)), key=lambda each: each[:3])
    assert len(found) == count
    return found, ends


@pytest.mark.covers("S310")
def test_a_second_cluster_is_equal_to_the_first_record_for_record(tmp_path: Path) -> None:
    """Saved by one, and loaded by another: in the same process, and by `serve --load`. What one of
    them is given from then on, the others do not have.
    """
    with Cluster(brokers=3, topics=TOPICS) as first, Cluster(brokers=3) as second:
        fill(first.bootstrap_servers)
        with open_consumer(first.bootstrap_servers, group_id="g") as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 1, 7)], asynchronous=False)
        first.save(tmp_path / "saved")
        second.load(tmp_path / "saved")
        with Served("--load", str(tmp_path / "saved")) as third:
            copies = (second.bootstrap_servers, third.bootstrap_servers)
            for isolation_level in ("read_committed", "read_uncommitted"):
                original = look(first.bootstrap_servers, isolation_level)
                for copy in copies:
                    assert look(copy, isolation_level) == original
            for copy in copies:
                with open_consumer(copy, group_id="g") as consumer:
                    (committed,) = consumer.committed([TopicPartition("orders", 1)], TIMEOUT_S)
                assert committed.offset == 7
            producer = Producer(settings(third.bootstrap_servers))
            producer.produce("orders", "only here", partition=0)
            flush(producer)
        assert first.records("orders") == second.records("orders")
