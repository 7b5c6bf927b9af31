"""Deadlines as data: a heap of callbacks, run by whoever knows what time it is.

The core never waits. It leaves callbacks here; one actor sleeps until `deadline_ms()` and then
calls `run_due(now_ms)`, so that ten thousand sessions cost one timer of the event loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timer:
    """One callback at one deadline; `cancel()` forgets it."""

    __slots__ = ("callback", "deadline_ms")

    def __init__(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the callback; the heap drops the empty shell when it comes up."""
        self.callback = None


class DueTimers(Generic[K]):
    """For each key at most one timer, which calls when the key's owner may be due.

    It may call too early: an owner that is due later now asks to be called again. While the process
    in which they run `stands_still` nobody is called; who was due then is with `resume`.
    """

    __slots__ = ("_late", "_stands_still", "_timers")

    def __init__(self, stands_still: Callable[[], bool]) -> None:
        self._timers: dict[K, Timer] = {}
        self._stands_still = stands_still
        self._late: dict[K, Callable[[K], None]] = {}

    def arm(self, times: TimerHeap, key: K, due_ms: int | None, call: Callable[[K], None]) -> None:
        """Have `times` run `call(key)` at `due_ms` (None: never), unless it will earlier anyway."""
        if due_ms is None:
            return
        timer = self._timers.get(key)
        if timer is not None:
            if timer.deadline_ms <= due_ms:
                return
            timer.cancel()
        self._timers[key] = times.call_at(due_ms, lambda: self._run(key, call))

    def _run(self, key: K, call: Callable[[K], None]) -> None:
        del self._timers[key]
        if self._stands_still():
            self._late[key] = call
        else:
            call(key)

    def resume(self) -> None:
        """The process goes on: call all that were due meanwhile."""
        late, self._late = self._late, {}
        for key, call in late.items():
            call(key)

    def forget(self, key: K) -> None:
        """Call this key no more."""
        self._late.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def clear(self) -> None:
        """Call nobody any more."""
        self._late.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class TimerHeap:
    """Timers by deadline; equal deadlines run in the order they were set."""

    __slots__ = ("_heap", "_seq", "_soon", "on_earlier", "patient_until_ms")

    def __init__(self) -> None:
        # By deadline, then in the order they were set; tuples of numbers compare fast.
        self._heap: list[tuple[int, int, Timer]] = []
        self._seq = 0
        # While the clock is moved on: where to. What clients ask for on the way lasts that long.
        self.patient_until_ms = 0
        self._soon: list[Callable[[], None]] = []
        # Told when a new timer becomes the earliest, so that the sleeping actor can wake up for it.
        self.on_earlier: Callable[[], None] | None = None

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` once the cluster's clock has reached `deadline_ms` (ms since the
        epoch).
        """
        self._seq += 1
        timer = Timer(deadline_ms, callback)
        heap = self._heap
        if self.on_earlier is None:
            heapq.heappush(heap, (deadline_ms, self._seq, timer))
            return timer
        earliest = not heap or deadline_ms < heap[0][0]
        heapq.heappush(heap, (deadline_ms, self._seq, timer))
        if earliest:
            self.on_earlier()
        return timer

    def call_when_impatient(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """The same for the end of a client's patience. While the clock is moved on, that is not
        before it arrives: a client that asks again each half second would never let it.
        """
        return self.call_at(max(deadline_ms, self.patient_until_ms), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next `run_due`, whatever the time is then.

        For long work done in slices: one that asks for its next turn gets that only after the
        actor has let others run. A clock that stands still does not stop it.
        """
        self._soon.append(callback)
        if self.on_earlier is not None:
            self.on_earlier()

    def deadline_ms(self) -> int | None:
        """The earliest deadline of a live timer, or None; 0 if something is to run at once."""
        if self._soon:
            return 0
        heap = self._heap
        while heap:
            deadline_ms, _, timer = heap[0]
            if timer.callback is not None:
                return deadline_ms
            heapq.heappop(heap)
        return None

    def are_due(self, now_ms: int) -> bool:
        """Whether some deadline has passed; perhaps of a timer that was cancelled."""
        heap = self._heap
        return bool(heap) and heap[0][0] <= now_ms

    def run_due(self, now_ms: int) -> int:
        """Run every timer whose deadline is at or before `now_ms`; returns how many ran."""
        ran = 0
        if self._soon:
            soon, self._soon = self._soon, []
            ran = len(soon)
            for run in soon:
                run()
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            callback = heapq.heappop(heap)[2].callback
            if callback is not None:
                ran += 1
                callback()
        return ran
