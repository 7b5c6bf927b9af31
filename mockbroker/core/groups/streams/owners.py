"""The processes that own each task, by kind, kept with each change of a member.

Source: StreamsGroup, current…TaskToProcessId.
"""

from __future__ import annotations

from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.reconcile import Owners
from mockbroker.core.groups.streams.tasks import OwnedTasks, TaskSets

_NOBODY: frozenset[str] = frozenset()


class TaskOwners:
    """A task has one process that has it active, and any number with a copy of its state."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._standby: dict[tuple[str, int], frozenset[str]] = {}
        self._warmup: dict[tuple[str, int], frozenset[str]] = {}

    def lookups(self) -> Owners:
        """The functions by which reconciliation looks owners up."""
        return Owners(
            lambda subtopology, partition: self._active.get((subtopology, partition)),
            lambda subtopology, partition: self._standby.get((subtopology, partition), _NOBODY),
            lambda subtopology, partition: self._warmup.get((subtopology, partition), _NOBODY),
        )

    def add(self, member: StreamsMember) -> None:
        for owned in (member.assigned, member.revoking):
            self._add_owned(owned, member.process_id)

    def remove(self, member: StreamsMember) -> None:
        for owned in (member.assigned, member.revoking):
            self._remove_owned(owned, member.process_id)

    def _add_owned(self, owned: OwnedTasks, process: str) -> None:
        for subtopology, epochs in owned.active.items():
            self._active.update(((subtopology, each), process) for each in epochs)
        for tasks, owners in ((owned.standby, self._standby), (owned.warmup, self._warmup)):
            for key in _keys(tasks):
                owners[key] = owners.get(key, _NOBODY) | {process}

    def _remove_owned(self, owned: OwnedTasks, process: str) -> None:
        for subtopology, epochs in owned.active.items():
            for each in epochs:
                # In a compacted log another process may be the owner already.
                if self._active.get((subtopology, each)) == process:
                    del self._active[subtopology, each]
        for tasks, owners in ((owned.standby, self._standby), (owned.warmup, self._warmup)):
            for key in _keys(tasks):
                rest = owners.get(key, _NOBODY) - {process}
                if rest:
                    owners[key] = rest
                else:
                    owners.pop(key, None)


def _keys(tasks: TaskSets) -> list[tuple[str, int]]:
    return [(subtopology, each) for subtopology, ps in tasks.items() for each in ps]
