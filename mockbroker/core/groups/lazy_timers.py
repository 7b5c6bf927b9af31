"""Session deadlines of many members behind one timer.

A heartbeat only writes its member's deadline; nothing moves in the heap. An entry that comes up too
early is put back at the deadline its member has by then, so that each member costs one heap
operation per session timeout, however often it heartbeats. The heap's first time is therefore a
lower bound.
"""

from __future__ import annotations

import heapq


class LazyTimer:
    """Something that ends unless it is renewed: a member, or a member id given out but not used
    yet.
    """

    __slots__ = ("deadline_ms", "member_id", "queued_ms")

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.deadline_ms: int | None = None  # None: does not end by itself
        self.queued_ms: int | None = None  # where its live heap entry stands


class LazyTimerHeap:
    """Leases by deadline."""

    __slots__ = ("_heap", "_seq")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, LazyTimer]] = []
        self._seq = 0

    def arm(self, timer: LazyTimer, deadline_ms: int) -> None:
        """Let the timer end at `deadline_ms` instead of whatever was set before."""
        timer.deadline_ms = deadline_ms
        queued_ms = timer.queued_ms
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(timer, deadline_ms)

    def postpone(self, timer: LazyTimer, by_ms: int) -> None:
        """Let a timer that ends by itself end that much later."""
        if timer.deadline_ms is not None:
            timer.deadline_ms += by_ms

    def cancel(self, timer: LazyTimer) -> None:
        """Forget the timer; its heap entry goes when it comes up."""
        timer.deadline_ms = None

    def next_ms(self) -> int | None:
        """A time before which no timer ends, or None."""
        heap = self._heap
        while heap and (heap[0][2].deadline_ms is None or heap[0][2].queued_ms != heap[0][0]):
            self._pop()
        return heap[0][0] if heap else None

    def pop_ended(self, now_ms: int) -> LazyTimer | None:
        """The first timer that has ended by `now_ms`, or None. It is cancelled by that."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            at_ms, timer = heap[0][0], heap[0][2]
            live = timer.queued_ms == at_ms
            self._pop()
            if not live or timer.deadline_ms is None:
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
        heapq.heappush(self._heap, (at_ms, self._seq, timer))

    def _pop(self) -> None:
        at_ms, _, timer = heapq.heappop(self._heap)
        if timer.queued_ms == at_ms:
            timer.queued_ms = None
