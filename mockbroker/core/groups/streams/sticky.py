"""The sticky task assignor, the only one of Kafka 4.3.

Active tasks stay with their member, up to its share. Then they go to a member with a standby of
them, which has the state. The rest goes to the least loaded process, and there to the least loaded
member. Standby tasks of stateful subtopologies follow: first to the former active member, then to a
former standby, then to the least loaded process without the task. A process never has a task twice.
Kafka 4.3 assigns no warm-up tasks, and uses neither racks nor client tags.

Source: StickyTaskAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.streams.processes import JavaQueue, Process, TaskId
from mockbroker.core.groups.streams.tasks import Tasks, TaskSets
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode


class AssignedMember(NamedTuple):
    """A member with its last target assignment."""

    process_id: str
    last: Tasks


class AssignedSubtopology(NamedTuple):
    tasks: int
    is_stateful: bool


class _Owner(NamedTuple):
    process_id: str
    member_id: str


class _Quota:
    """The fair share of a member: the tasks that are left, over the members with room."""

    __slots__ = ("_members", "_tasks", "per_member")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def filled(self, count: int) -> None:
        """A member has `count` tasks now; if that is the share, it gets no more."""
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self.per_member = self._share()


def assign_sticky(
    members: Mapping[str, AssignedMember],
    subtopologies: Mapping[str, AssignedSubtopology],
    standby_replicas: int,
) -> dict[str, Tasks]:
    """The target assignment of each member. `subtopologies` are sorted by id."""
    assignment = _Assignment(members, subtopologies, standby_replicas)
    assignment.assign_active()
    if standby_replicas > 0:
        assignment.assign_standby()
    return {member_id: assignment.tasks_of(member_id) for member_id in members}


class _Assignment:
    """One run of the assignor."""

    __slots__ = (
        "_active_quota",
        "_members",
        "_processes",
        "_replicas",
        "_subtopologies",
        "_task_quota",
        "_was_active",
        "_was_standby",
    )

    def __init__(
        self,
        members: Mapping[str, AssignedMember],
        subtopologies: Mapping[str, AssignedSubtopology],
        replicas: int,
    ) -> None:
        self._members = members
        self._subtopologies = subtopologies
        self._replicas = replicas
        active = sum(each.tasks for each in subtopologies.values())
        stateful = sum(each.tasks for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._task_quota = _Quota(active + stateful * replicas, len(members))
        self._processes: dict[str, Process] = {}
        self._was_active: dict[TaskId, _Owner] = {}
        self._was_standby: dict[TaskId, list[_Owner]] = {}
        for member_id in hash_order(members, string_hash):
            member = members[member_id]
            owner = _Owner(member.process_id, member_id)
            self._processes.setdefault(member.process_id, Process()).add_member(member_id)
            for task in _task_ids(member.last.active):
                self._was_active[task] = owner
            for task in _task_ids(member.last.standby):
                self._was_standby.setdefault(task, []).append(owner)

    def tasks_of(self, member_id: str) -> Tasks:
        process = self._processes[self._members[member_id].process_id]
        active = process.active.get(member_id, set())
        return Tasks(_compact(active), _compact(process.standby.get(member_id, set())))

    def assign_active(self) -> None:
        tasks = [
            TaskId(subtopology, partition)
            for subtopology, each in self._subtopologies.items()
            for partition in range(each.tasks)
        ]
        tasks.sort(key=lambda task: (task.partition, task.subtopology))
        tasks = [task for task in tasks if not self._stays(task, self._was_active.get(task))]
        tasks = [
            task
            for task in tasks
            if not self._stays(task, self._least_loaded(self._was_standby.get(task), None))
        ]
        queue = self._by_load()
        for task in sorted(tasks):
            if not queue:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            process = queue.poll()
            self._active_added(process.add_to_least_loaded(task, is_active=True))
            queue.add(process)

    def _stays(self, task: TaskId, owner: _Owner | None) -> bool:
        """Assign an active task to a former owner that has room; whether it has."""
        if owner is None:
            return False
        process = self._processes[owner.process_id]
        if process.counts[owner.member_id] >= self._active_quota.per_member:
            return False
        self._active_added(process.add_task(owner.member_id, task, is_active=True))
        return True

    def _active_added(self, count: int) -> None:
        self._active_quota.filled(count)
        self._task_quota.filled(count)

    def _by_load(self) -> JavaQueue[Process]:
        # Kafka's map has room for as many processes as there are members.
        buckets = 1
        while buckets < len(self._members):
            buckets *= 2
        order = hash_order(self._processes, string_hash, buckets)
        return JavaQueue((self._processes[each] for each in order), lambda each: each.load)

    def _least_loaded(self, owners: list[_Owner] | None, task: TaskId | None) -> _Owner | None:
        """The former owner of the least loaded process; None if the task is there already.

        As in Kafka, only the first owner's process is checked for the task at the end.
        """
        if not owners:
            return None
        candidate = owners[0]
        first = self._processes[candidate.process_id]
        process_load, member_load = first.load, first.counts[candidate.member_id]
        for owner in owners[1:]:
            process = self._processes[owner.process_id]
            if process.load < process_load and (task is None or not process.has_task(task)):
                load = process.counts[owner.member_id]
                if load < member_load:
                    process_load, member_load, candidate = process.load, load, owner
        return candidate if task is None or not first.has_task(task) else None

    def assign_standby(self) -> None:
        tasks = [
            TaskId(subtopology, partition)
            for subtopology, each in self._subtopologies.items()
            if each.is_stateful
            for partition in range(each.tasks)
        ]
        tasks.sort(key=lambda task: (task.partition, task.subtopology), reverse=True)
        rest: list[tuple[TaskId, int]] = []
        for task in tasks:
            for replica in range(self._replicas):
                if not self._returns(task):
                    rest.append((task, self._replicas - replica))
                    break
        queue = self._by_load()
        for task, replicas in sorted(rest, reverse=True):
            for _ in range(replicas):
                if not self._to_least_loaded(queue, task):
                    break  # there are not enough processes

    def _returns(self, task: TaskId) -> bool:
        """Assign a standby to the former active member or a former standby; whether one has
        room.
        """
        owner = self._was_active.get(task)
        if (
            owner is not None
            and not self._processes[owner.process_id].has_task(task)
            and self._add_standby(owner, task)
        ):
            return True
        owner = self._least_loaded(self._was_standby.get(task), task)
        return owner is not None and self._add_standby(owner, task)

    def _add_standby(self, owner: _Owner, task: TaskId) -> bool:
        process = self._processes[owner.process_id]
        if process.counts[owner.member_id] >= self._task_quota.per_member:
            return False
        self._task_quota.filled(process.add_task(owner.member_id, task, is_active=False))
        return True

    def _to_least_loaded(self, queue: JavaQueue[Process], task: TaskId) -> bool:
        """Assign a standby to the least loaded process without the task; whether there is one."""
        passed: list[Process] = []
        found = False
        while queue and not found:
            process = queue.poll()
            passed.append(process)
            if not process.has_task(task):
                self._task_quota.filled(process.add_to_least_loaded(task, is_active=False))
                found = True
        for process in reversed(passed):
            queue.add(process)
        return found


def _task_ids(tasks: TaskSets) -> list[TaskId]:
    return [TaskId(subtopology, each) for subtopology, ps in tasks.items() for each in ps]


def _compact(tasks: set[TaskId]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, set()).add(partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in found.items()}
