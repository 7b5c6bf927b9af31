"""Rows of Spark's Kafka source as tables: what is unusual in a topic ends no job."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from mockbroker.pipeline.spark.from_kafka import commits_of, in_table, records_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
AT = datetime(2026, 1, 1, tzinfo=UTC)

Headers = list[tuple[str, bytes | None]]


def ids(spark: SparkSession, *headers: Headers | None) -> list[str | None]:
    rows = [(b"k", b"v", "t", 0, offset, AT, each) for offset, each in enumerate(headers)]
    frame = records_of(spark.createDataFrame(rows, SOURCE))
    return [row["id"] for row in frame.orderBy("offset").collect()]


def test_an_id_is_the_first_header_of_its_name_that_has_a_value(spark: SparkSession) -> None:
    assert ids(
        spark,
        None,
        [("trace", b"1")],
        [("mb-id", None)],
        [("mb-id", None), ("mb-id", b"a"), ("mb-id", b"b")],
        [("mb-id", b"\xffc")],
    ) == [None, None, None, "a", "\ufffdc"]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def commits(spark: SparkSession, *records: tuple[bytes | None, bytes | None]) -> list[Any]:
    rows = [(*each, "__consumer_offsets", 0, at, AT, None) for at, each in enumerate(records)]
    frame = commits_of(spark.createDataFrame(rows, SOURCE)).orderBy("seq")
    return [
        (row["group"], row["topic"], row["partition"], row["offset"]) for row in frame.collect()
    ]


def key(group: str, topic: str, partition: int) -> bytes:
    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)


def value(offset: int) -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + text("") + struct.pack(">q", 0)


def test_commits_are_read_whatever_else_is_in_their_topic(spark: SparkSession) -> None:
    """Kafka stores a negative offset, and whoever may write to the topic can write anything."""
    found = commits(
        spark,
        (key("g", "t", 3), value(7)),
        (key("g", "t", 3), None),
        (key("g", "t", 3), value(-5)),
        (key("g", "t", -1), value(1)),
        (struct.pack(">h", 2) + text("g"), b"a group"),
        (None, b"no key"),
        (b"", b""),
        (b"\x00\x01", b""),
        (key("g", "t", 3)[:-2], value(7)[:4]),
        (b"\x00\x01\x00\x02\xff\xfe" + text("t") + struct.pack(">i", 0), value(1)),
    )
    assert found == [
        ("g", "t", 3, 7),
        ("g", "t", 3, None),
        ("g", "t", 3, -5),
        ("g", "t", -1, 1),
        ("\ufffd\ufffd", "t", 0, 1),
    ]


def test_a_run_may_have_any_name(spark: SparkSession) -> None:
    frame = in_table("records", spark.sql("SELECT 1 AS offset"), "Ann's run \\1")
    [row] = frame.collect()
    assert (row["run"], row["offset"], row["id"]) == ("Ann's run \\1", 1, None)
