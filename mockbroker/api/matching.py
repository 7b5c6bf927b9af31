"""Which record each expectation takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mockbroker.api.nearness import Field, key_of
from mockbroker.core.views.stored import StoredRecord

# Ways through the partitions that a search for an order follows, before it gives up.
STATES_MAX = 20_000

Expectation = Sequence[Field]


def pairs(expected: Sequence[Expectation], found: Sequence[StoredRecord]) -> list[int | None]:
    """For each expectation the index of its record, each record at most once, as many as possible.

    A maximum matching of a bipartite graph: an expectation without a free record takes another's
    where that one finds a new record (an augmenting path, by breadth first).
    """
    candidates = _Candidates(found)
    taken: list[int | None] = [None] * len(expected)
    owner: dict[int, int] = {}
    for start in range(len(expected)):
        came_from: dict[int, int] = {}  # a record, and the expectation that would take it
        queue = [start]
        free = None
        for index in queue:
            for record in candidates.of(expected[index]):
                if record in came_from:
                    continue
                came_from[record] = index
                if record not in owner:
                    free = record
                    break
                queue.append(owner[record])
            if free is not None:
                break
        while free is not None:
            index = came_from[free]
            owner[free] = index
            taken[index], free = free, taken[index]
    return taken


def in_order(expected: Sequence[Expectation], found: Sequence[StoredRecord]) -> list[int | None]:
    """As `pairs`, but in each partition the records' offsets rise with the expectations.

    Within a partition the first record that matches is never a worse choice than a later one, so
    only the partition is a choice. States that led nowhere are not entered again.
    """
    logs: dict[int, list[int]] = defaultdict(list)
    for record, each in enumerate(found):
        logs[each.partition].append(record)
    partitions = list(logs.values())
    taken: list[int | None] = [None] * len(expected)

    def steps(index: int, cursors: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        for number, log in enumerate(partitions):
            for at in range(cursors[number], len(log)):
                if _matches(expected[index], found[log[at]]):
                    yield log[at], (*cursors[:number], at + 1, *cursors[number + 1 :])
                    break

    if not expected:
        return taken
    start: tuple[int, ...] = (0,) * len(partitions)
    seen: set[tuple[int, tuple[int, ...]]] = {(0, start)}
    stack = [steps(0, start)]
    while stack and len(seen) < STATES_MAX:
        index = len(stack) - 1
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        record, cursors = step
        if (index + 1, cursors) in seen:
            continue
        taken[index] = record
        if index + 1 == len(expected):
            return taken
        seen.add((index + 1, cursors))
        stack.append(steps(index + 1, cursors))
    return [None] * len(expected)


class _Candidates:
    """The records that match an expectation, found by their value where it has one."""

    def __init__(self, found: Sequence[StoredRecord]) -> None:
        self._found = found
        self._by_value: dict[bytes | None, list[int]] = defaultdict(list)
        for index, record in enumerate(found):
            self._by_value[record.value].append(index)

    def of(self, fields: Expectation) -> Iterator[int]:
        literal = key_of(fields)
        some = range(len(self._found)) if literal is None else self._by_value.get(literal[0], ())
        for index in some:
            if _matches(fields, self._found[index]):
                yield index


def _matches(fields: Expectation, record: StoredRecord) -> bool:
    return not any(each.differences(record) for each in fields)
