"""Session deadlines of many members behind one timer.

A heartbeat writes the deadline of its member and does not change the heap. An entry that is popped
before the member's deadline is pushed again with that deadline. Each member thus costs one heap
operation per session timeout, whatever its heartbeat interval. The heap's first time is a lower
bound.
"""

from __future__ import annotations

import heapq

# Up to this number of entries, those of cancelled timers only leave the heap when they are popped.
SWEEP_MIN = 100


class LazyTimer:
    """Something that expires unless it is renewed: a member, or a member id that was returned with
    MEMBER_ID_REQUIRED.
    """

    __slots__ = ("deadline_ms", "member_id", "queued_ms")

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.deadline_ms: int | None = None  # None: it does not expire
        self.queued_ms: int | None = None  # the time of its valid heap entry


class LazyTimerHeap:
    """Timers by deadline."""

    __slots__ = ("_heap", "_seq", "_sweep_above")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, LazyTimer]] = []
        self._seq = 0
        self._sweep_above = SWEEP_MIN

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, timer: LazyTimer, deadline_ms: int) -> None:
        """Set the timer's deadline, in place of any former one."""
        timer.deadline_ms = deadline_ms
        queued_ms = timer.queued_ms
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(timer, deadline_ms)

    def postpone(self, timer: LazyTimer, by_ms: int) -> None:
        """Extend the deadline of an armed timer by `by_ms`."""
        if timer.deadline_ms is not None:
            timer.deadline_ms += by_ms

    def cancel(self, timer: LazyTimer) -> None:
        """Cancel the timer. Its heap entry is dropped when it is popped."""
        timer.deadline_ms = None

    def next_ms(self) -> int | None:
        """A time before which no timer expires, or None without timers."""
        heap = self._heap
        while heap and (heap[0][2].deadline_ms is None or heap[0][2].queued_ms != heap[0][0]):
            self._pop()
        return heap[0][0] if heap else None

    def pop_expired(self, now_ms: int) -> LazyTimer | None:
        """The first timer that has expired by `now_ms`, or None. The timer is cancelled."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            at_ms, timer = heap[0][0], heap[0][2]
            valid = timer.queued_ms == at_ms
            self._pop()
            if not valid or timer.deadline_ms is None:
                continue
            if timer.deadline_ms > now_ms:
                self._push(timer, timer.deadline_ms)
                continue
            timer.deadline_ms = None
            return timer
        return None

    def _push(self, timer: LazyTimer, at_ms: int) -> None:
        self._seq += 1
        timer.queued_ms = at_ms
        if len(self._heap) > self._sweep_above:
            self._sweep()
        heapq.heappush(self._heap, (at_ms, self._seq, timer))

    def _sweep(self) -> None:
        """Drop the entries of cancelled timers and those that an earlier entry replaced: a group
        whose clock stands still may get and lose members without end.
        """
        kept = []
        for entry in self._heap:
            timer = entry[2]
            if timer.queued_ms != entry[0]:
                continue
            if timer.deadline_ms is None:
                timer.queued_ms = None
            else:
                kept.append(entry)
        self._heap[:] = kept  # the same list: `pop_expired` may be iterating
        heapq.heapify(self._heap)
        self._sweep_above = max(SWEEP_MIN, 2 * len(kept))

    def _pop(self) -> None:
        at_ms, _, timer = heapq.heappop(self._heap)
        if timer.queued_ms == at_ms:
            timer.queued_ms = None
