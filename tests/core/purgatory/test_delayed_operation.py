"""A delayed operation completes once: by what moves, by the end of its time, or by force."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.purgatory.delayed_operation import DelayedOperation
from mockbroker.core.replication.partition import Partition

DEADLINE_MS = 1_000


class Until(DelayedOperation):
    """Waits until a partition is deleted; writes down what it is called for."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def try_complete(self, changed: Partition) -> None:
        self.calls.append(f"try {changed.index}")
        if changed.deleted:
            self.force_complete()

    def on_complete(self) -> None:
        assert self.is_completed
        self.calls.append("complete")

    def on_expiration(self) -> None:
        self.calls.append("expiration")


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create_topic("t", 2, 1)
    return cluster


@pytest.fixture
def partitions(cluster: Cluster) -> list[Partition]:
    return cluster.topics["t"].partitions


@pytest.fixture
def operation(cluster: Cluster, partitions: list[Partition]) -> Until:
    operation = Until()
    operation.watch(partitions, cluster.runtime.timers, DEADLINE_MS)
    return operation


def is_forgotten(cluster: Cluster, partitions: list[Partition]) -> bool:
    """No partition and no timer has the operation any more."""
    return not any(each.has_watchers for each in partitions) and (
        cluster.runtime.timers.run_due(DEADLINE_MS) == 0
    )


def test_nothing_is_looked_at_before_something_moves(operation: Until) -> None:
    assert operation.calls == []
    assert not operation.is_completed


def test_a_move_that_does_not_suffice_leaves_it_waiting(
    operation: Until, partitions: list[Partition]
) -> None:
    partitions[1].notify()
    partitions[0].notify()
    assert operation.calls == ["try 1", "try 0"]
    assert all(each.has_watchers for each in partitions)


def test_what_it_waits_for_completes_it(
    cluster: Cluster, operation: Until, partitions: list[Partition]
) -> None:
    partitions[1].delete()
    partitions[0].delete()
    assert operation.calls == ["try 1", "complete"]
    assert is_forgotten(cluster, partitions)


def test_other_keys_may_take_the_place_of_those_it_waits_for(
    cluster: Cluster, operation: Until, partitions: list[Partition]
) -> None:
    operation.watch_instead(partitions[1:])
    assert [each.has_watchers for each in partitions] == [False, True]
    cluster.runtime.timers.run_due(DEADLINE_MS)
    assert operation.calls == ["expiration", "complete"]
    assert is_forgotten(cluster, partitions)


def test_the_end_of_its_time_is_noted_before_it_completes(
    cluster: Cluster, operation: Until, partitions: list[Partition]
) -> None:
    assert cluster.runtime.timers.run_due(DEADLINE_MS - 1) == 0
    cluster.runtime.timers.run_due(DEADLINE_MS)
    assert operation.calls == ["expiration", "complete"]
    assert is_forgotten(cluster, partitions)


def test_force_completes_it_once(
    cluster: Cluster, operation: Until, partitions: list[Partition]
) -> None:
    operation.force_complete()
    operation.force_complete()
    operation.expire()
    assert operation.calls == ["complete"]
    assert is_forgotten(cluster, partitions)


def test_it_does_not_look_again_in_the_round_in_which_another_watcher_completes_it(
    cluster: Cluster, partitions: list[Partition]
) -> None:
    completed = Until()

    class Forcing:
        def partition_changed(self, partition: Partition) -> None:
            completed.force_complete()

    partitions[0].watch(Forcing())
    completed.watch(partitions[:1], cluster.runtime.timers, DEADLINE_MS)
    partitions[0].notify()
    assert completed.calls == ["complete"]
