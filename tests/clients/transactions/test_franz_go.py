"""franz-go's transactions, which are of the second protocol where the cluster has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import golang
from tests.support.json_lines import JsonLines, StepError
from tests.support.librdkafka import create_topic

pytestmark = pytest.mark.go


@pytest.fixture
def go(bootstrap_servers: str) -> Iterator[JsonLines]:
    with JsonLines(golang.tour()) as tour:
        tour("connect", bootstrap=bootstrap_servers.split(","))
        yield tour


@pytest.fixture
def topic(bootstrap_servers: str, name: str) -> str:
    """A topic of two partitions."""
    create_topic(bootstrap_servers, name, 2)
    return name


def send(go: JsonLines, producer: str, topic: str, *values: str, partition: int = 0) -> Any:
    """Begin a transaction and send records in it."""
    records = [{"value": value, "partition": partition} for value in values]
    return go("txn_send", name=producer, topic=topic, records=records, commit=True)


def committed(go: JsonLines, topic: str, count: int) -> list[str]:
    records = go("read", topic=topic, count=count, read_committed=True)
    return [record["value"] for record in records]


@pytest.mark.covers("S239", "S241")
def test_committed_records_arrive_and_aborted_ones_never_do(go: JsonLines, topic: str) -> None:
    """And each end raises the epoch, which the answer to EndTxn tells."""
    first = go("txn_open", name="p", transactional_id=topic)
    epochs = [first["epoch"]]
    for number, commit in enumerate((True, False, True)):
        send(go, "p", topic, f"{number} a", f"{number} b")
        after = go("txn_end", name="p", commit=commit)
        assert after["producer_id"] == first["producer_id"]
        epochs.append(after["epoch"])
    assert committed(go, topic, 4) == ["0 a", "0 b", "2 a", "2 b"]
    assert epochs == [0, 1, 2, 3]
    go("txn_close", name="p")


@pytest.mark.covers("S238", "S245")
def test_a_second_producer_fences_the_first(go: JsonLines, topic: str) -> None:
    go("txn_open", name="first", transactional_id=topic)
    send(go, "first", topic, "lost")
    go("txn_open", name="second", transactional_id=topic)
    with pytest.raises(StepError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH|INVALID_TXN"):
        go("txn_end", name="first", commit=True)
    send(go, "second", topic, "kept")
    go("txn_end", name="second", commit=True)
    assert committed(go, topic, 1) == ["kept"]


@pytest.mark.covers("S251")
def test_who_takes_too_long_is_aborted(go: JsonLines, topic: str) -> None:
    go("txn_open", name="p", transactional_id=topic, timeout_ms=1000)
    send(go, "p", topic, "late")
    deadline = time.monotonic() + 30
    while go("offsets", topic=topic)["end"]["0"] < 2:  # the marker
        assert time.monotonic() < deadline, "it is never aborted"
    with pytest.raises(StepError):
        go("txn_end", name="p", commit=True)


@pytest.mark.covers("S239", "S256")
def test_what_is_read_and_what_is_written_count_together(
    go: JsonLines, topic: str, bootstrap_servers: str
) -> None:
    """consume, transform, produce, with a group's offsets in the transactions (KIP-447)."""
    target = f"{topic}-out"
    create_topic(bootstrap_servers, target)
    values = [str(n) for n in range(100)]
    records = [{"value": value, "partition": 0} for value in values]
    go("produce", topic=topic, idempotent=True, records=records)
    done = go(
        "transform",
        transactional_id=f"id-{topic}",
        group=f"group-{topic}",
        source=topic,
        topic=target,
        count=100,
    )
    assert done["records"] == 100
    assert committed(go, target, 100) == [f"<{value}>" for value in values]
    assert go("committed", group=f"group-{topic}", topic=topic)["0"] == 100
