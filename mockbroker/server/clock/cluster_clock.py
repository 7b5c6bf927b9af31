"""The cluster's clock: the trio run's time as Kafka writes it, in milliseconds since the epoch.

All other code takes its time from `now_ms`. The run's clock (a `trio.testing.MockClock` in a test)
therefore moves session timeouts, long polls and record timestamps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import trio

from mockbroker.core.timing.clock_domains import ClockDomain
from mockbroker.core.timing.timers import TimerHeap
from mockbroker.server.clock.adjustable_clock import AdjustableClock, advance

# A sleep that ends a hair early would spin once more; a hundredth of a millisecond settles it.
_ROUNDING_S = 1e-5
HAIR_MS = 1e-3


class ClusterClock:
    """Maps the time of the current trio run to wall-clock milliseconds; made inside that run."""

    __slots__ = ("_epoch_ms", "_run_time", "_started_at")

    def __init__(self, epoch_ms: int | None = None) -> None:
        # The clock itself, since every request reads it: `trio.current_time` looks it up each time.
        self._run_time = trio.lowlevel.current_clock().current_time
        self._started_at = self._run_time()
        self._epoch_ms = time.time_ns() // 1_000_000 if epoch_ms is None else epoch_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch, on the run's clock."""
        # Without the hair added, a sum of exact steps could come out as 999.9999… ms.
        return self._epoch_ms + int((self._run_time() - self._started_at) * 1000 + HAIR_MS)

    def jump(self, by_ms: int) -> None:
        """Advance at once by `by_ms`; timers that are due by then run late."""
        self._epoch_ms += by_ms

    def trio_time(self, at_ms: int) -> float:
        """The run's time, in seconds, at which `now_ms()` has reached `at_ms`."""
        return self._started_at + (at_ms - self._epoch_ms) / 1000 + _ROUNDING_S


class Timekeeper:
    """The one task that sleeps for all timers of the core, and advances of the clock."""

    __slots__ = ("_clock", "_heap", "_sleep", "_spare")

    def __init__(
        self, heap: TimerHeap, clock: ClusterClock, spare: Callable[[int], None] | None = None
    ) -> None:
        """`spare` is called with the ms of each advance, before it."""
        self._heap = heap
        self._clock = clock
        self._spare = spare
        self._sleep: trio.CancelScope | None = None
        heap.on_earlier = self._wake_earlier

    def _wake_earlier(self) -> None:
        # Moving the deadline of the running sleep costs no task switch, unlike waking the sleeper.
        deadline_ms = self._heap.deadline_ms()
        if self._sleep is not None and deadline_ms is not None:
            self._sleep.deadline = self._wake_time(deadline_ms)

    def _wake_time(self, deadline_ms: int) -> float:
        # `trio_time` lies a little behind the beginning of its millisecond. A clock frozen in
        # between would never reach it, though the timer is due.
        if deadline_ms <= self._clock.now_ms():
            return -math.inf
        return self._clock.trio_time(deadline_ms)

    async def run(self) -> None:
        """Run timers as they fall due, until cancelled."""
        while True:
            deadline_ms = self._heap.deadline_ms()
            with trio.CancelScope() as self._sleep:
                if deadline_ms is not None:
                    self._sleep.deadline = self._wake_time(deadline_ms)
                await trio.sleep_forever()
            self._heap.run_due(self._clock.now_ms())

    async def advance(self, milliseconds: int, *, spare_connected: bool = True) -> None:
        """Advance the cluster's clock, from deadline to deadline, until all tasks are at rest.

        Timers run in their order, each at its own time. With `spare_connected` the sessions of
        connected members do not expire. Raises ValueError for a negative step and RuntimeError
        where the run's clock is not an AdjustableClock.
        """
        from trio.testing import wait_all_tasks_blocked  # brings pytest with it, so only when used

        clock = adjustable_clock()
        if spare_connected and self._spare is not None and milliseconds > 0:
            self._spare(milliseconds)
        target_ms = self._heap.patient_until_ms = self._clock.now_ms() + milliseconds

        def next_deadline() -> float | None:
            # Compared in milliseconds: `trio_time` of the last deadline lies a little behind the
            # target where the clock is frozen at the beginning of a millisecond.
            deadline_ms = self._heap.deadline_ms()
            if deadline_ms is None or deadline_ms > target_ms:
                return None
            return self._clock.trio_time(deadline_ms)

        try:
            await advance(clock, milliseconds / 1000, next_deadline, wait_all_tasks_blocked)
        finally:
            self._heap.patient_until_ms = 0

    async def advance_part(
        self, part: ClockDomain, milliseconds: int, *, spare_connected: bool = True
    ) -> None:
        """Advance the time of one part of the cluster only.

        The run's clock does not move, so it may be any. Raises ValueError for a negative step.
        """
        from trio.testing import wait_all_tasks_blocked

        if milliseconds < 0:
            raise ValueError(f"a clock moves forward: {milliseconds} ms")
        if spare_connected and milliseconds > 0:
            part.spare_connected(milliseconds)
        target_ms = part.now_ms() + milliseconds
        while True:
            await wait_all_tasks_blocked()
            deadline_ms = part.deadline_ms()
            if deadline_ms is None or deadline_ms > target_ms:
                break
            part.jump_to(deadline_ms)
        part.jump_to(target_ms)
        await wait_all_tasks_blocked()


def adjustable_clock() -> AdjustableClock:
    """The current run's clock. Raises RuntimeError where it is not an AdjustableClock."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, AdjustableClock):
        raise RuntimeError(
            f"this run's clock is a {type(clock).__name__}; start it with an AdjustableClock"
        )
    return clock
