"""Each partition is settled by itself; the last one, or the end of the time, completes it all."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.purgatory.delayed_replication import REQUEST_TIMED_OUT, DelayedReplication
from mockbroker.core.replication.partition import Partition

DEADLINE_MS = 1_000


class Waits(NamedTuple):
    partition: Partition
    name: str


class Verdicts(DelayedReplication[Waits]):
    """Settles an entry with whatever stands under its name in `known`."""

    def __init__(self, waiting: list[Waits]) -> None:
        super().__init__(waiting)
        self.known: dict[str, int] = {}
        self.settled: list[tuple[str, int]] = []
        self.completed = 0

    def error_of(self, waits: Waits) -> int | None:
        return self.known.get(waits.name)

    def set_error(self, waits: Waits, error: int) -> None:
        self.settled.append((waits.name, error))

    def on_complete(self) -> None:
        self.completed += 1


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create_topic("t", 2, 1)
    return cluster


@pytest.fixture
def partitions(cluster: Cluster) -> list[Partition]:
    return cluster.topics["t"].partitions


@pytest.fixture
def operation(cluster: Cluster, partitions: list[Partition]) -> Verdicts:
    first, second = partitions
    operation = Verdicts([Waits(first, "a"), Waits(first, "b"), Waits(second, "c")])
    operation.start(cluster.runtime.timers, DEADLINE_MS)
    return operation


def test_without_a_partition_to_wait_for_it_completes_at_once(cluster: Cluster) -> None:
    operation = Verdicts([])
    operation.start(cluster.runtime.timers, DEADLINE_MS)
    assert operation.completed == 1
    assert cluster.runtime.timers.deadline_ms() is None


def test_only_entries_of_the_partition_that_moved_are_settled(
    operation: Verdicts, partitions: list[Partition]
) -> None:
    operation.known = {"a": 0, "b": 6, "c": 0}
    partitions[0].notify()
    assert operation.settled == [("a", 0), ("b", 6)]
    assert [each.has_watchers for each in partitions] == [False, True]
    assert operation.completed == 0


def test_a_partition_is_watched_until_all_its_entries_are_settled(
    operation: Verdicts, partitions: list[Partition]
) -> None:
    operation.known = {"a": 0}
    partitions[0].notify()
    assert partitions[0].has_watchers
    operation.known = {"b": 0}
    partitions[0].notify()
    assert operation.settled == [("a", 0), ("b", 0)]
    assert not partitions[0].has_watchers


def test_the_last_partition_completes_it_once(
    cluster: Cluster, operation: Verdicts, partitions: list[Partition]
) -> None:
    operation.known = {"a": 0, "b": 0, "c": 19}
    for partition in partitions:
        partition.notify()
    assert operation.settled == [("a", 0), ("b", 0), ("c", 19)]
    assert operation.completed == 1
    assert cluster.runtime.timers.run_due(DEADLINE_MS) == 0


def test_those_left_when_the_time_is_up_have_timed_out(
    cluster: Cluster, operation: Verdicts, partitions: list[Partition]
) -> None:
    operation.known = {"b": 0}
    partitions[0].notify()
    cluster.runtime.timers.run_due(DEADLINE_MS)
    assert operation.settled == [("b", 0), ("a", REQUEST_TIMED_OUT), ("c", REQUEST_TIMED_OUT)]
    assert operation.completed == 1
    assert not any(each.has_watchers for each in partitions)
