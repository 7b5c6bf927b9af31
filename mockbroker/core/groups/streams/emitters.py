"""Emit the events of streams groups: tasks that moved, and statuses that members were sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.events import StreamsStatusSent, StreamsTasksMoved
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker.core.groups.streams.tasks import NOTHING_OWNED, OwnedTasks

if TYPE_CHECKING:
    from mockbroker.core.runtime import Runtime

ROLES = ("active", "standby", "warmup")
_GONE = StreamsMember(member_id="")
# Role, subtopology and partition.
_Task = tuple[str, str, int]


def emit_tasks(
    runtime: Runtime,
    node_id: int,
    group_id: str,
    before: Mapping[str, StreamsMember],
    after: Mapping[str, StreamsMember],
) -> None:
    """The members of a group were `before`, and are `after` now."""
    for member_id in sorted(before.keys() | after.keys()):
        old, new = before.get(member_id, _GONE), after.get(member_id, _GONE)
        if old is new:
            continue
        for change, role, subtopology, tasks in _moves(old, new):
            runtime.emit(
                StreamsTasksMoved(
                    runtime.now_ms(), node_id, group_id, member_id, new.epoch, change, role,
                    subtopology, tasks,
                )
            )  # fmt: skip


def _moves(
    old: StreamsMember, new: StreamsMember
) -> Iterator[tuple[str, str, str, tuple[int, ...]]]:
    """Change, role, subtopology and partitions, in that order."""
    had, has = _tasks(old.assigned), _tasks(new.assigned)
    was_revoking, is_revoking = _tasks(old.revoking), _tasks(new.revoking)
    changes = {
        "revoked": (had | was_revoking) - has - is_revoking,
        "revoking": is_revoking - was_revoking,
        "assigned": has - had,
    }
    for change, moved in changes.items():
        for role in ROLES:
            by_subtopology: dict[str, list[int]] = {}
            for _, subtopology, partition in sorted(each for each in moved if each[0] == role):
                by_subtopology.setdefault(subtopology, []).append(partition)
            for subtopology, partitions in by_subtopology.items():
                yield change, role, subtopology, tuple(partitions)


def _tasks(owned: OwnedTasks) -> set[_Task]:
    if owned is NOTHING_OWNED:
        return set()
    kinds = zip(ROLES, (owned.active, owned.standby, owned.warmup), strict=True)
    return {
        (role, subtopology, partition)
        for role, tasks in kinds
        for subtopology, partitions in tasks.items()
        for partition in partitions
    }


def emit_statuses(runtime: Runtime, node_id: int, group_id: str, result: object) -> None:
    """A member is sent this answer."""
    if isinstance(result, StreamsResult):
        for status in result.statuses:
            runtime.emit(
                StreamsStatusSent(
                    runtime.now_ms(), node_id, group_id, result.member_id, status.code.name,
                    status.detail,
                )
            )  # fmt: skip
