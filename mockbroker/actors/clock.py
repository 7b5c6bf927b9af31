"""The cluster's clock: the trio run's time as Kafka writes it, in milliseconds since the epoch.

Everything above and below takes its time from here (`now_ms`), so whatever moves the run's clock (a
`trio.testing.MockClock` in a test) moves session timeouts, long polls and record timestamps with
it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import trio

from mockbroker.actors.steering import SteerableClock, advance
from mockbroker.core.time_scopes import TimeScope
from mockbroker.core.timers import TimerHeap

# A sleep that ends a hair early would spin once more; a hundredth of a millisecond settles it.
_ROUNDING_S = 1e-5
HAIR_MS = 1e-3


class ClusterClock:
    """Maps the time of the current trio run to wall-clock milliseconds; made inside that run."""

    __slots__ = ("_epoch_ms", "_started_at")

    def __init__(self, epoch_ms: int | None = None) -> None:
        self._started_at = trio.current_time()
        self._epoch_ms = time.time_ns() // 1_000_000 if epoch_ms is None else epoch_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch, on the run's clock."""
        # Without the hair added, a sum of exact steps could come out as 999.9999… ms.
        return self._epoch_ms + int((trio.current_time() - self._started_at) * 1000 + HAIR_MS)

    def move_on(self, by_ms: int) -> None:
        """Let it be that much later at once; timers that are due by then are late."""
        self._epoch_ms += by_ms

    def trio_time(self, at_ms: int) -> float:
        """The run's time, in seconds, at which `now_ms()` has reached `at_ms`."""
        return self._started_at + (at_ms - self._epoch_ms) / 1000 + _ROUNDING_S


class Timekeeper:
    """The one task that sleeps for all of the core's timers, and what moves the clock for them."""

    __slots__ = ("_clock", "_heap", "_sleep", "_spare")

    def __init__(
        self, heap: TimerHeap, clock: ClusterClock, spare: Callable[[int], None] | None = None
    ) -> None:
        """`spare` is called with the ms that the clock is about to be moved on by."""
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
        # `trio_time` lies a little behind the beginning of its millisecond. A clock that stands
        # still in between would never get there, though the timer is due.
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
        """Move the cluster's clock forward, from deadline to deadline, and let the run settle.

        Timers run in their order, each at its own time. Sessions of members that are connected
        move along, unless `spare_connected` is false. Raises ValueError for a negative step and
        RuntimeError where the run's clock is not ours to move.
        """
        from trio.testing import wait_all_tasks_blocked  # brings pytest with it, so only when used

        clock = steerable_clock()
        if spare_connected and self._spare is not None and milliseconds > 0:
            self._spare(milliseconds)
        target_ms = self._heap.patient_until_ms = self._clock.now_ms() + milliseconds

        def next_deadline() -> float | None:
            # In milliseconds, as the core sees them: `trio_time` of the last one lies a little
            # behind the target where the clock stands at the beginning of a millisecond.
            deadline_ms = self._heap.deadline_ms()
            if deadline_ms is None or deadline_ms > target_ms:
                return None
            return self._clock.trio_time(deadline_ms)

        try:
            await advance(clock, milliseconds / 1000, next_deadline, wait_all_tasks_blocked)
        finally:
            self._heap.patient_until_ms = 0

    async def advance_part(
        self, part: TimeScope, milliseconds: int, *, spare_connected: bool = True
    ) -> None:
        """The same for one part of the cluster: nobody else sees that time passes.

        This works on any clock, as it is not the run's that moves. Raises ValueError for a
        negative step.
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


def steerable_clock() -> SteerableClock:
    """The current run's clock. Raises RuntimeError when it is one that cannot be steered."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, SteerableClock):
        raise RuntimeError(
            f"this run's clock is a {type(clock).__name__}; start it with a SteerableClock"
        )
    return clock
