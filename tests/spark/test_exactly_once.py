"""Exactly once, asserted and put to the test: queries that die at a batch of the test's choice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mockbroker import StoredRecord
from mockbroker_fixtures import (
    Crash,
    SparkKafka,
    assert_exactly_once,
    assert_no_gap,
    assert_same_batches_after_crash,
    read_checkpoint,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def record(offset: int, value: bytes) -> StoredRecord:
    return StoredRecord("orders", 0, offset, 0, None, value, ())


SENT = [record(n, b"order %d" % n) for n in range(3)]


def dicts(*numbers: int) -> list[dict[str, str]]:
    return [{"value": f"order {n}"} for n in numbers]


def test_each_once_in_any_order_is_right() -> None:
    assert_exactly_once(SENT, dicts(2, 0, 1), "value")


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        (dicts(0, 2), r"of 3: 1 lost: 'order 1' \(orders-0 at 1\)"),
        (dicts(0, 1, 1, 2, 1), "1 more than once: 'order 1' 3 times"),
        (dicts(0, 1, 2, 7), "1 not of the source: 'order 7'"),
        (dicts(0, 0, 7), "2 lost: .*; 1 more than once: .*; 1 not of the source"),
    ],
)
def test_what_is_wrong_is_told(sink: list[dict[str, str]], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_exactly_once(SENT, sink, "value")


def test_of_very_much_that_is_wrong_the_first_is_shown() -> None:
    many = [record(n, b"%d" % n) for n in range(1000)]
    with pytest.raises(AssertionError, match=r"1000 lost: '0' .*at 9\) …$"):
        assert_exactly_once(many, [], "value")


def test_a_key_that_two_items_have_tells_nothing() -> None:
    with pytest.raises(ValueError, match="two items of the source have the key 'order 0'"):
        assert_exactly_once([*SENT, SENT[0]], [], "value")


def test_a_key_may_be_a_function() -> None:
    assert_exactly_once(SENT, [0, 1, 2], lambda each: getattr(each, "offset", each))


# -- real queries ----------------------------------------------------------------------------------

spark_tests = pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")

BATCH = 4


class Job:
    """Copies a topic to a list, in batches of four records."""

    def __init__(self, spark: SparkSession, kafka: SparkKafka, checkpoint: Path) -> None:
        self.spark, self.kafka, self.checkpoint = spark, kafka, checkpoint
        self.sink: list[dict[str, object]] = []

    def write(self, frame: DataFrame, _number: int) -> None:
        values = frame.selectExpr("CAST(value AS STRING) AS value", "offset").collect()
        self.sink += [row.asDict() for row in values]

    def start(self, crash: Crash | None = None, *, available_now: bool = True) -> StreamingQuery:
        write = self.write if crash is None else crash.around(self.write)
        options = self.kafka.options("orders", maxOffsetsPerTrigger=BATCH)
        frame = self.spark.readStream.format("kafka").options(**options).load()
        writer = frame.writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def send(self, *numbers: int) -> None:
        self.kafka.send_messages("orders", [(None, f"order {n}") for n in numbers])

    def finish(self) -> None:
        assert self.start().awaitTermination(120)

    def assert_once(self) -> None:
        assert_exactly_once(self.kafka.records("orders"), self.sink, "value")


@pytest.fixture
def job(spark: SparkSession, spark_kafka: SparkKafka, checkpoint_dir: Path) -> Job:
    spark_kafka.create_topics(["orders"])
    made = Job(spark, spark_kafka, checkpoint_dir)
    made.send(*range(2 * BATCH))
    return made


def marked(function: Callable[..., None]) -> Callable[..., None]:
    for mark in spark_tests:
        function = mark(function)
    return function


@marked
@pytest.mark.covers("S266", "S338")
def test_a_crash_before_the_commit_repeats_the_batch_over_the_same_range(job: Job) -> None:
    """The side effect is there twice, for foreachBatch works at least once."""
    crash = Crash(batch=1)
    crash.wait(job.start(crash))
    before = read_checkpoint(job.checkpoint)
    assert (before.pending, before.last_commit) == ([1], 0)
    assert before.ranges(1) == {("orders", 0): range(BATCH, 2 * BATCH)}
    job.assert_once()
    job.send(99)
    job.finish()
    assert_same_batches_after_crash(before, job.checkpoint)
    assert_no_gap(job.checkpoint)
    with pytest.raises(AssertionError, match="4 more than once: 'order 4' 2 times"):
        job.assert_once()


@marked
@pytest.mark.covers("S338")
def test_a_crash_after_the_commit_repeats_nothing(job: Job) -> None:
    crash = Crash(batch=0, when="after_commit")
    crash.wait(job.start(crash))
    assert crash.happened
    before = read_checkpoint(job.checkpoint)
    assert before.last_commit == 0
    assert len(job.sink) == BATCH
    job.finish()
    assert_same_batches_after_crash(before, job.checkpoint)
    job.assert_once()


@marked
def test_a_query_without_a_batch_to_follow_is_stopped_after_the_commit(job: Job) -> None:
    crash = Crash(batch=1, when="after_commit")
    crash.wait(job.start(crash, available_now=False))
    assert read_checkpoint(job.checkpoint).last_commit == 1
    assert read_checkpoint(job.checkpoint).pending == []
    job.send(99)
    job.finish()
    job.assert_once()


@marked
def test_a_crash_that_does_not_come_is_an_error(job: Job) -> None:
    crash = Crash(batch=5)
    with pytest.raises(AssertionError, match="has ended, without a batch 5"):
        crash.wait(job.start(crash))
    assert not crash.happened
