"""Rounds at fixed intervals that visit only what may need it, and none when nothing does.

Kafka looks at every log of a broker each few minutes or seconds. Here a partition is *noted* when
something happened to it, or for the time when it is next worth a look; a round visits those that
were noted for its time or before. The rounds lie on a grid of times, as if all of them took place.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import Timer, TimerHeap


OVERTAKEN_MAX = 64  # notes in the heap that an earlier one has overtaken


class MaintenanceSchedule:
    """Calls `visit(partitions, now_ms)` at the first time of the grid after any was noted.

    The grid begins at `first_ms` and goes on in steps of `interval_ms()`, which is asked for anew
    each time. A partition is noted once, for the earliest time asked for.
    """

    __slots__ = (
        "_due",
        "_first_ms",
        "_heap",
        "_interval_ms",
        "_now_ms",
        "_seq",
        "_timer",
        "_timers",
        "_visit",
    )

    def __init__(
        self,
        timers: TimerHeap,
        now_ms: Callable[[], int],
        first_ms: int,
        interval_ms: Callable[[], int],
        visit: Callable[[list[Partition], int], None],
    ) -> None:
        self._timers = timers
        self._now_ms = now_ms
        self._first_ms = first_ms
        self._interval_ms = interval_ms
        self._visit = visit
        self._due: dict[Partition, int] = {}
        self._heap: list[tuple[int, int, Partition]] = []
        self._seq = 0
        self._timer: Timer | None = None

    def schedule(self, partition: Partition, at_ms: int) -> None:
        """Have `partition` visited in the first round at or after `at_ms` (ms)."""
        known = self._due.get(partition)
        if known is not None and known <= at_ms:
            return
        self._due[partition] = at_ms
        self._seq += 1
        heapq.heappush(self._heap, (at_ms, self._seq, partition))
        if len(self._heap) > 2 * len(self._due) + OVERTAKEN_MAX:
            self._heap = [each for each in self._heap if self._due.get(each[2]) == each[0]]
            heapq.heapify(self._heap)
        self._arm()

    def _arm(self) -> None:
        """Set the timer for the round that comes first, if one is to come."""
        heap = self._heap
        while heap and self._due.get(heap[0][2]) != heap[0][0]:
            heapq.heappop(heap)
        if not heap:
            return
        round_ms = self._round_after(self._heap[0][0])
        timer = self._timer
        if timer is not None:
            if timer.deadline_ms <= round_ms:
                return
            timer.cancel()
        self._timer = self._timers.call_at(round_ms, self._run)

    def _round_after(self, at_ms: int) -> int:
        """The first time of the grid at or after `at_ms` and later than now."""
        interval_ms = max(self._interval_ms(), 1)
        at_ms = max(at_ms, self._now_ms() + 1)
        steps = -((self._first_ms - at_ms) // interval_ms)
        return self._first_ms + max(steps, 0) * interval_ms

    def _run(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        heap, due = self._heap, self._due
        partitions = []
        while heap and heap[0][0] <= now_ms:
            at_ms, _, partition = heapq.heappop(heap)
            if due.get(partition) == at_ms:
                del due[partition]
                partitions.append(partition)
        self._visit([partition for partition in partitions if not partition.deleted], now_ms)
        self._arm()
