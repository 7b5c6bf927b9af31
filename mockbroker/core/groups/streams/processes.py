"""The processes of an application while an assignor runs: their members and the load of each.

Ties between equal loads are broken as in Kafka, by the order of java.util.PriorityQueue.

Source: ProcessState.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order

T = TypeVar("T")


class TaskId(NamedTuple):
    subtopology: str
    partition: int


class JavaQueue(Generic[T]):
    """A heap with the element order of java.util.PriorityQueue; it is not stable."""

    __slots__ = ("_items", "_key")

    def __init__(self, items: Iterable[T], key: Callable[[T], float]) -> None:
        self._key = key
        self._items: list[T] = []
        for item in items:
            self.add(item)

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: T) -> None:
        items, key = self._items, self._key(item)
        position = len(items)
        items.append(item)
        while position > 0:
            parent = (position - 1) >> 1
            if key >= self._key(items[parent]):
                break
            items[position] = items[parent]
            position = parent
        items[position] = item

    def poll(self) -> T:
        """Remove and return the first. Raises IndexError if there is none."""
        items = self._items
        first, last = items[0], items.pop()
        if items:
            self._sift_down(last)
        return first

    def _sift_down(self, item: T) -> None:
        items, key, size = self._items, self._key(item), len(self._items)
        position = 0
        while position < size >> 1:
            child = 2 * position + 1
            right = child + 1
            if right < size and self._key(items[child]) > self._key(items[right]):
                child = right
            if key <= self._key(items[child]):
                break
            items[position] = items[child]
            position = child
        items[position] = item


class _Load:
    """The number of tasks of a member, as in its process's queue."""

    __slots__ = ("count", "member_id")

    def __init__(self, member_id: str, count: int) -> None:
        self.member_id = member_id
        self.count = count


class Process:
    """A process: tasks by member and kind."""

    __slots__ = ("_by_load", "_task_count", "_tasks", "active", "counts", "standby")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}  # tasks by member
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self._tasks: set[TaskId] = set()
        self._task_count = 0
        self._by_load: JavaQueue[_Load] | None = None

    @property
    def load(self) -> float:
        """Tasks per member."""
        return self._task_count / len(self.counts)

    def has_task(self, task: TaskId) -> bool:
        return task in self._tasks

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Assign a task to a member; returns the member's number of tasks."""
        self._by_load = None
        return self._add(member_id, task, is_active=is_active)

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Assign a task to the member with the fewest; returns its number of tasks."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active=is_active)
        if self._by_load is None:
            order = hash_order(self.counts, string_hash)
            loads = (_Load(each, self.counts[each]) for each in order)
            self._by_load = JavaQueue(loads, lambda each: each.count)
        least = self._by_load.poll()
        least.count = self._add(least.member_id, task, is_active=is_active)
        self._by_load.add(least)
        return least.count

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self._tasks.add(task)
        kind = self.active if is_active else self.standby
        kind.setdefault(member_id, set()).add(task)
        self.counts[member_id] += 1
        self._task_count += 1
        return self.counts[member_id]
