"""Spark's streams: micro-batches, checkpoints and restarts without gap or duplicate."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from tests.spark.steps import Read, SparkKafka, finish, progress_of, sorted_reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]


@pytest.mark.covers("S328")
def test_an_available_now_stream_goes_on_where_its_checkpoint_ends(
    steps: SparkKafka, topic: str, offset_fetching: str
) -> None:
    """Three runs under one checkpoint read each record once, and the third finds nothing."""
    steps.fill(topic, map(str, range(100)))
    first = steps.read_available(steps.stream(topic))
    assert sorted(chain.from_iterable(first)) == steps.stored(topic)
    steps.fill(topic, map(str, range(100, 150)))
    second = steps.read_available(steps.stream(topic))
    assert sum(map(len, second)) == 50
    assert sorted(chain.from_iterable(first + second)) == steps.stored(topic)
    assert steps.read_available(steps.stream(topic)) == []


def test_max_offsets_per_trigger_cuts_a_stream_into_batches(steps: SparkKafka, topic: str) -> None:
    for partition in range(4):
        steps.fill(topic, map(str, range(30)), partition=partition)
    batches = steps.read_available(steps.stream(topic, maxOffsetsPerTrigger=40))
    assert [len(batch) for batch in batches] == [40, 40, 40]
    assert sorted(chain.from_iterable(batches)) == steps.stored(topic)


def test_a_running_stream_gets_what_is_produced_meanwhile(steps: SparkKafka, topic: str) -> None:
    steps.fill(topic, ["before"], partition=0)
    batches: list[list[Read]] = []
    frame = steps.stream(topic, kafka_fetch_max_wait_ms=5)
    query = steps.into(batches, frame).start()
    query.processAllAvailable()
    assert batches == [[(0, 0, "before")]]
    for n in range(3):
        steps.fill(topic, [f"later {n}"], partition=n)
        query.processAllAvailable()
    assert batches[1:] == [[(0, 1, "later 0")], [(1, 0, "later 1")], [(2, 0, "later 2")]]
    query.stop()


def test_a_stream_from_the_latest_offset_leaves_out_what_was_there(
    steps: SparkKafka, topic: str, offset_fetching: str
) -> None:
    steps.fill(topic, ["before"], partition=0)
    batches: list[list[Read]] = []
    frame = steps.stream(topic, startingOffsets="latest", kafka_fetch_max_wait_ms=5)
    query = steps.into(batches, frame).start()
    query.processAllAvailable()
    steps.fill(topic, ["after"], partition=0)
    query.processAllAvailable()
    query.stop()
    assert list(chain.from_iterable(batches)) == [(0, 1, "after")]


def test_progress_reports_offsets_as_the_log_has_them(steps: SparkKafka, topic: str) -> None:
    for partition, count in enumerate((3, 0, 5, 1)):
        steps.fill(topic, map(str, range(count)), partition=partition)
    query = steps.into([], steps.stream(topic)).trigger(availableNow=True).start()
    finish(query)
    [progress] = [each for each in progress_of(query) if each["numInputRows"]]
    [source] = progress["sources"]
    end = {topic: {"0": 3, "1": 0, "2": 5, "3": 1}}
    assert source["numInputRows"] == 9
    assert (source["endOffset"], source["latestOffset"]) == (end, end)


def test_a_batch_that_crashed_is_repeated_with_the_same_range(
    steps: SparkKafka, topic: str
) -> None:
    """The range is in the checkpoint before the batch runs; what came since waits its turn."""
    steps.fill(topic, ["a", "b"], partition=0)
    crashed: list[list[Read]] = []

    def crash(batch: DataFrame, _number: int) -> None:
        crashed.append(sorted_reads(batch.collect()))
        raise RuntimeError("after the side effect")

    frame = steps.stream(topic)
    query = steps.writer(frame).foreachBatch(crash).trigger(availableNow=True).start()
    with pytest.raises(Exception, match="after the side effect"):
        finish(query)
    steps.fill(topic, ["c"], partition=0)
    repeated = steps.read_available(frame)
    assert crashed == [[(0, 0, "a"), (0, 1, "b")]]
    assert repeated == [*crashed, [(0, 2, "c")]]


def test_partitions_added_while_a_stream_runs_are_read_from_their_start(
    steps: SparkKafka, topic: str
) -> None:
    batches: list[list[Read]] = []
    query = steps.into(batches, steps.stream(topic, kafka_fetch_max_wait_ms=5)).start()
    query.processAllAvailable()
    steps.kafka.call(lambda cluster: cluster.topic_control.add_partitions(cluster.topics[topic], 6))
    steps.fill(topic, ["new"], partition=5)
    query.processAllAvailable()
    query.stop()
    assert list(chain.from_iterable(batches)) == [(5, 0, "new")]


def test_a_stream_drops_duplicates_across_its_batches(steps: SparkKafka, topic: str) -> None:
    """State that Spark keeps between runs, fed from the checkpoint on."""
    steps.fill(topic, ["a", "b", "a"], partition=0)
    frame = steps.stream(topic).dropDuplicates(["value"])
    first = steps.read_available(frame)
    steps.fill(topic, ["b", "c"], partition=1)
    second = steps.read_available(frame)
    assert sorted(value for _, _, value in chain.from_iterable(first)) == ["a", "b"]
    assert [value for _, _, value in chain.from_iterable(second)] == ["c"]
