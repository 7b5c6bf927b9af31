"""A heap of timers.

The core never waits. It sets timers here; the timekeeper sleeps until `deadline_ms()` and then
calls `run_due(now_ms)`. Ten thousand sessions thus cost one timer of the event loop. Very many that
are due at once run in turns of `TIMERS_PER_TURN`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heapify, heappop, heappush, nsmallest
from operator import itemgetter
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# Up to this number of timers, cancelled ones only leave the heap at their deadlines.
SWEEP_MIN = 1000
TIMERS_PER_TURN = 200


class Timer:
    """One callback at one deadline, in ms since the epoch."""

    __slots__ = ("callback", "deadline_ms")

    def __init__(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Drop the callback. The heap drops the timer when it is popped."""
        self.callback = None


class DueTimers(Generic[K]):
    """At most one timer for each key.

    A timer may run too early: a callback whose deadline was extended arms it again. While the
    broker's process `is_paused`, no callback runs; `resume` runs those that fell due.
    """

    __slots__ = ("_is_paused", "_overdue", "_timers")

    def __init__(self, is_paused: Callable[[], bool]) -> None:
        self._timers: dict[K, Timer] = {}
        self._is_paused = is_paused
        self._overdue: dict[K, Callable[[K], None]] = {}

    def arm(self, heap: TimerHeap, key: K, due_ms: int | None, call: Callable[[K], None]) -> None:
        """Run `call(key)` at `due_ms` (None: never), unless the timer is set to an earlier time."""
        if due_ms is None:
            return
        timer = self._timers.get(key)
        if timer is not None:
            if timer.deadline_ms <= due_ms:
                return
            timer.cancel()
        self._timers[key] = heap.call_at(due_ms, partial(self._run, key, call))

    def _run(self, key: K, call: Callable[[K], None]) -> None:
        del self._timers[key]
        if self._is_paused():
            self._overdue[key] = call
        else:
            call(key)

    def resume(self) -> None:
        """Run the callbacks that fell due while the process was paused."""
        overdue, self._overdue = self._overdue, {}
        for key, call in overdue.items():
            call(key)

    def cancel(self, key: K) -> None:
        """Cancel the timer of a key."""
        self._overdue.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def clear(self) -> None:
        """Cancel all timers."""
        self._overdue.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class TimerHeap:
    """Timers by deadline. Timers with equal deadlines run in the order in which they were set."""

    __slots__ = (
        "_heap",
        "_seq",
        "_soon",
        "_sweep_above",
        "left_in_turn",
        "on_earlier",
    )

    def __init__(self) -> None:
        # (deadline, sequence number, timer); tuples of numbers compare fast.
        self._heap: list[tuple[int, int, Timer]] = []
        self._sweep_above = SWEEP_MIN
        self._seq = 0
        self._soon: deque[Callable[[], None]] = deque()
        self.left_in_turn = 0  # how many timers may still run in this turn
        # Called when a new timer is the earliest, so that the timekeeper can wake up for it.
        self.on_earlier: Callable[[], None] | None = None

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` when the clock has reached `deadline_ms` (ms since the epoch)."""
        self._seq += 1
        timer = Timer(deadline_ms, callback)
        heap = self._heap
        if len(heap) > self._sweep_above:
            self._sweep()
        if self.on_earlier is None:
            heappush(heap, (deadline_ms, self._seq, timer))
            return timer
        earliest = not heap or deadline_ms < heap[0][0]
        heappush(heap, (deadline_ms, self._seq, timer))
        if earliest:
            self.on_earlier()
        return timer

    def _sweep(self) -> None:
        """Drop the cancelled timers, which a frozen clock never pops. The heap may then double, so
        that a timer costs constant time. The list stays the same: `run_due` may be iterating.
        """
        self._heap[:] = [entry for entry in self._heap if entry[2].callback is not None]
        heapify(self._heap)
        self._sweep_above = max(SWEEP_MIN, 2 * len(self._heap))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` in a turn of its own at any time, also with a frozen clock.

        For long work in slices: other tasks run between two slices.
        """
        self._soon.append(callback)
        if self.on_earlier is not None:
            self.on_earlier()

    def deadline_ms(self) -> int | None:
        """The earliest deadline, or None without timers; 0 after `call_soon`."""
        if self._soon:
            return 0
        heap = self._heap
        while heap:
            deadline_ms, _, timer = heap[0]
            if timer.callback is not None:
                return deadline_ms
            heappop(heap)
        return None

    def pending(self, limit: int) -> list[tuple[int, Callable[[], None]]]:
        """The next `limit` deadlines with their callbacks, the earliest first."""
        live = ((due, number, timer) for due, number, timer in self._heap if timer.callback)
        return [
            (due, timer.callback)
            for due, _, timer in nsmallest(limit, live, key=itemgetter(0, 1))
            if timer.callback is not None
        ]

    def are_due(self, now_ms: int) -> bool:
        """Whether the deadline of a timer has passed."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            if heap[0][2].callback is not None:
                return True
            heappop(heap)
        return False

    def run_due(self, now_ms: int, limit: int = sys.maxsize) -> int:
        """Run the first callback of `call_soon`, and the timers with deadlines up to `now_ms`, at
        most `limit` of them; returns how many ran.
        """
        if not self._soon:
            return self.run_timers(now_ms, limit)
        self._soon.popleft()()
        return 1 + self.run_timers(now_ms, limit)

    def run_timers(self, now_ms: int, limit: int = sys.maxsize) -> int:
        """Run the timers with deadlines up to `now_ms`, at most `limit`; returns how many ran."""
        heap = self._heap
        self.left_in_turn = limit
        while heap and heap[0][0] <= now_ms and self.left_in_turn > 0:
            callback = heappop(heap)[2].callback
            if callback is not None:
                self.left_in_turn -= 1
                callback()
        return limit - self.left_in_turn
