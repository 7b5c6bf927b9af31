"""Deadlines as data: a heap of callbacks, run by whoever knows what time it is.

The core never waits. It leaves callbacks here; one actor sleeps until `deadline_ms()` and then
calls `run_due(now_ms)`, so that ten thousand sessions cost one timer of the event loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Timer:
    """One callback at one deadline; `cancel()` forgets it."""

    __slots__ = ("callback", "deadline_ms", "seq")

    def __init__(self, deadline_ms: int, seq: int, callback: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.seq = seq
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the callback; the heap drops the empty shell when it comes up."""
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return (self.deadline_ms, self.seq) < (other.deadline_ms, other.seq)


class DueTimers:
    """For each key at most one timer, which calls when the key's owner may be due.

    It may call too early: an owner that is due later now asks to be called again.
    """

    __slots__ = ("_timers",)

    def __init__(self) -> None:
        self._timers: dict[str, Timer] = {}

    def arm(
        self, times: TimerHeap, key: str, due_ms: int | None, call: Callable[[str], None]
    ) -> None:
        """Have `times` run `call(key)` at `due_ms` (None: never), unless it will earlier anyway."""
        if due_ms is None:
            return
        timer = self._timers.get(key)
        if timer is not None:
            if timer.deadline_ms <= due_ms:
                return
            timer.cancel()
        self._timers[key] = times.call_at(due_ms, lambda: self._run(key, call))

    def _run(self, key: str, call: Callable[[str], None]) -> None:
        del self._timers[key]
        call(key)

    def forget(self, key: str) -> None:
        """Call this key no more."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def clear(self) -> None:
        """Call nobody any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class TimerHeap:
    """Timers by deadline; equal deadlines run in the order they were set."""

    __slots__ = ("_heap", "_seq", "_soon", "on_earlier", "patient_until_ms")

    def __init__(self) -> None:
        self._heap: list[Timer] = []
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
        timer = Timer(deadline_ms, self._seq, callback)
        earliest = not self._heap or timer < self._heap[0]
        heapq.heappush(self._heap, timer)
        if earliest and self.on_earlier is not None:
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
        while heap and heap[0].callback is None:
            heapq.heappop(heap)
        return heap[0].deadline_ms if heap else None

    def run_due(self, now_ms: int) -> int:
        """Run every timer whose deadline is at or before `now_ms`; returns how many ran."""
        ran = 0
        if self._soon:
            soon, self._soon = self._soon, []
            ran = len(soon)
            for run in soon:
                run()
        heap = self._heap
        while heap and heap[0].deadline_ms <= now_ms:
            callback = heapq.heappop(heap).callback
            if callback is not None:
                ran += 1
                callback()
        return ran
