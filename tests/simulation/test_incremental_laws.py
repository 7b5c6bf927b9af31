"""Laws that look only at what has changed see what they would see if they looked at everything."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.core.events import IsrChanged
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import Partition
from mockbroker.simulation.laws import Laws
from mockbroker.simulation.laws.controller import SyncedAreAlive
from mockbroker.simulation.laws.coordinators import CoordinatorsKnow
from mockbroker.simulation.observe import Shard
from mockbroker.simulation.observe_coordinators import StoredOffsets, StoredRecords, stored_by
from mockbroker.simulation.world import World
from tests.simulation.meddling import append, batch_of, coordinated, partition_of
from tests.simulation.planted.hunting import violations_with
from tests.simulation.planted.planting import load_all


def _look_at_everything(patch: pytest.MonkeyPatch) -> None:
    def always(*_: object) -> bool:
        return True

    def read_anew(_: CoordinatorsKnow, shard: Shard) -> StoredRecords:
        return stored_by(shard)

    patch.setattr(Laws, "_has_written", always)
    patch.setattr(CoordinatorsKnow, "_stored_by", read_anew)


@pytest.mark.parametrize(
    ("bug", "seed"),
    [
        ("leader-epoch-stays", 0),
        ("partition-epoch-stays", 0),
        ("fencing-leaves-the-isr", 0),
        ("unfencing-elects-nobody", 0),
        ("waits-for-one-too-many", 2),
        ("coordinator-epoch-stays", 4),
    ],
)
def test_a_planted_bug_breaks_the_same_laws_at_the_same_time(
    bug: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = [load_all()[bug]]
    seen = violations_with(planted, seed)
    _look_at_everything(monkeypatch)
    assert violations_with(planted, seed) == seen
    assert seen


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics at which a law of the controller looks."""
    looks: list[str] = []
    law = next(each for each in world.laws._lookers if isinstance(each, SyncedAreAlive))
    monkeypatch.setattr(law, "look", lambda partition, _: looks.append(partition.topic.name))
    world.laws._lookers_of.clear()
    return looks


def test_laws_of_the_controller_pass_over_what_the_controller_has_not_written(
    world: World, looks: list[str]
) -> None:
    append(partition_of(world), batch_of())
    world.look()
    assert looks == []


def _isr_shrinks(partition: Partition, world: World) -> None:
    partition.isr = partition.isr[:2]


def _elr_changes(partition: Partition, world: World) -> None:
    partition.elr = (3,)


def _replicas_change(partition: Partition, world: World) -> None:
    partition.replicas.reverse()


def _leader_changes(partition: Partition, world: World) -> None:
    partition.leader_id = -1


def _leader_epoch_changes(partition: Partition, world: World) -> None:
    partition.leader_epoch += 1


def _partition_epoch_changes(partition: Partition, world: World) -> None:
    partition.partition_epoch += 1


def _broker_is_fenced(partition: Partition, world: World) -> None:
    world.cluster.processes[2].fenced = True


def _broker_shuts_down(partition: Partition, world: World) -> None:
    world.cluster.processes[2].shutting_down = True


def _directory_fails(partition: Partition, world: World) -> None:
    dirs = world.cluster.processes[2].log_dirs
    dirs.failed.add(dirs.paths[0])


def _registration_is_lost(partition: Partition, world: World) -> None:
    del world.cluster.brokers[2]


@pytest.mark.parametrize(
    "change",
    [
        _isr_shrinks,
        _elr_changes,
        _replicas_change,
        _leader_changes,
        _leader_epoch_changes,
        _partition_epoch_changes,
        _broker_is_fenced,
        _broker_shuts_down,
        _directory_fails,
        _registration_is_lost,
    ],
)
def test_laws_of_the_controller_look_whatever_changes_without_a_word(
    change: Callable[[Partition, World], None], world: World, looks: list[str]
) -> None:
    partition = partition_of(world)
    change(partition, world)
    partition.notify()
    world.look()
    assert looks == ["orders"]


def test_laws_of_the_controller_look_again_when_a_change_was_told_and_taken_back(
    world: World, looks: list[str]
) -> None:
    partition = partition_of(world)
    event = IsrChanged(world.clock.now_ms, "orders", 0, (1,), (1, 2, 3), 0, 0, "lagging")
    world.laws.on_event(event)
    partition.notify()
    world.look()
    assert looks == ["orders"]


def test_what_a_log_of_offsets_says_is_read_on_and_not_anew(world: World) -> None:
    shard = coordinated(world)
    log = shard.partition.log
    stored = StoredOffsets(log)
    assert stored.committed() == {("g", "orders", 0): (5, "")}
    read = []
    stored._take = lambda _, record: read.append(record.offset)  # type: ignore[method-assign]
    shard.commit("g", [("orders", 0, OffsetAndMetadata(6))])
    stored.committed()
    assert read == [log.end_offset - 1]


def test_a_log_that_was_cut_is_read_anew(world: World) -> None:
    shard = coordinated(world)
    log = shard.partition.log
    stored = StoredOffsets(log)
    assert stored.fits(log)
    log.truncate(log.end_offset - 1)
    assert not stored.fits(log)
    assert not stored.fits(ReplicaLog())
