"""Rounds at fixed intervals that visit scheduled partitions only.

Kafka visits each log of a broker at fixed intervals. Here a partition is scheduled after a change,
or for the time at which it may need maintenance. A round visits the partitions that are scheduled
for its time or before. Rounds keep Kafka's interval, but a round without partitions does not run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import Timer, TimerHeap


STALE_ENTRIES_MAX = 64  # entries of partitions that were scheduled again for an earlier time


class MaintenanceSchedule:
    """Calls `visit(partitions, now_ms)` in the first round at or after the scheduled time.

    Rounds are at `first_ms` and multiples of `interval_ms()` after it. A partition is scheduled
    once, for the earliest time.
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
        """Visit `partition` in the first round at or after `at_ms`."""
        known = self._due.get(partition)
        if known is not None and known <= at_ms:
            return
        self._due[partition] = at_ms
        self._seq += 1
        heapq.heappush(self._heap, (at_ms, self._seq, partition))
        if len(self._heap) > 2 * len(self._due) + STALE_ENTRIES_MAX:
            self._heap = [each for each in self._heap if self._due.get(each[2]) == each[0]]
            heapq.heapify(self._heap)
        self._arm()

    def _arm(self) -> None:
        """Set the timer for the next round, if a partition is scheduled."""
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
        """The time of the first round at or after `at_ms`, but not now."""
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
