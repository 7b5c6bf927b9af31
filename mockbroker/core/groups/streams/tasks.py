"""Tasks by kind. All maps are immutable.

Source: TasksTuple, TasksTupleWithEpochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

# Subtopology id -> partitions.
TaskSets: TypeAlias = "Mapping[str, frozenset[int]]"
# Subtopology id -> partition -> the member epoch at which the task was assigned.
TaskEpochs: TypeAlias = "Mapping[str, Mapping[int, int]]"
# Tasks as a request lists them, in its order: (subtopology id, partitions).
TaskLines: TypeAlias = "tuple[tuple[str, tuple[int, ...]], ...]"

_EMPTY: dict[str, frozenset[int]] = {}


class Tasks(msgspec.Struct, frozen=True):
    """The tasks of a target assignment, or those that a member reports as owned."""

    active: TaskSets = _EMPTY
    standby: TaskSets = _EMPTY
    warmup: TaskSets = _EMPTY

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


class OwnedTasks(msgspec.Struct, frozen=True):
    """The tasks of a member; only active tasks have epochs, because only they commit offsets."""

    active: TaskEpochs = msgspec.field(default_factory=dict)
    standby: TaskSets = _EMPTY
    warmup: TaskSets = _EMPTY

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def merged(self, other: OwnedTasks) -> OwnedTasks:
        """These tasks and those of `other`."""
        active = {subtopology: dict(epochs) for subtopology, epochs in self.active.items()}
        for subtopology, epochs in other.active.items():
            active.setdefault(subtopology, {}).update(epochs)
        return OwnedTasks(
            active, _union(self.standby, other.standby), _union(self.warmup, other.warmup)
        )


NO_TASKS = Tasks()
NOTHING_OWNED = OwnedTasks()


def owns_any(owned: Tasks, tasks: OwnedTasks) -> bool:
    """Whether one of `tasks` is owned, in the same kind (TasksTuple.containsAny)."""
    kinds = (
        (owned.active, tasks.active),
        (owned.standby, tasks.standby),
        (owned.warmup, tasks.warmup),
    )
    return any(
        not mine.isdisjoint(theirs[subtopology])
        for mine_by_id, theirs in kinds
        for subtopology, mine in mine_by_id.items()
        if subtopology in theirs
    )


def owns_only(
    reported: TaskLines | None, assigned: Mapping[str, Mapping[int, int] | frozenset[int]]
) -> bool:
    """Whether all reported tasks are assigned; False without a report."""
    if reported is None:
        return False
    return all(
        subtopology in assigned and all(each in assigned[subtopology] for each in partitions)
        for subtopology, partitions in reported
    )


def _union(one: TaskSets, other: TaskSets) -> TaskSets:
    result = dict(one)
    for subtopology, partitions in other.items():
        result[subtopology] = result.get(subtopology, frozenset()) | partitions
    return result
