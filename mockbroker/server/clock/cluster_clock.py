"""The cluster's clock: the trio run's time in milliseconds since the epoch, as in Kafka.

All other code takes its time from `now_ms`. The run's clock (a `trio.testing.MockClock` in a test)
therefore moves session timeouts, long polls and record timestamps.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from mockbroker.core.timing.clock_domains import ClockDomain
from mockbroker.core.timing.timers import TIMERS_PER_TURN, TimerHeap
from mockbroker.server.clock.adjustable_clock import AdjustableClock, advance
from mockbroker.server.network.pause_gate import PauseGate

# A sleep that ends slightly early would spin once more; a hundredth of a millisecond prevents it.
_ROUNDING_S = 1e-5
HAIR_MS = 1e-3


class ClusterClock:
    """Maps the time of the current trio run to wall-clock milliseconds; made inside that run."""

    __slots__ = ("_epoch_ms", "_run_time", "_started_at")

    def __init__(self, epoch_ms: int | None = None) -> None:
        # The clock object itself, because every request reads it: `trio.current_time` searches for
        # it each time.
        self._run_time = trio.lowlevel.current_clock().current_time
        self._started_at = self._run_time()
        self._epoch_ms = time.time_ns() // 1_000_000 if epoch_ms is None else epoch_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch, on the run's clock."""
        # Without the extra time, a sum of exact steps could result in 999.9999… ms.
        return self._epoch_ms + int((self._run_time() - self._started_at) * 1000 + HAIR_MS)

    def jump(self, by_ms: int) -> None:
        """Advance at once by `by_ms`; timers that are due by then run late."""
        self._epoch_ms += by_ms

    def trio_time(self, at_ms: int) -> float:
        """The run's time, in seconds, at which `now_ms()` has reached `at_ms`."""
        return self._started_at + (at_ms - self._epoch_ms) / 1000 + _ROUNDING_S


class Timekeeper:
    """The one task that sleeps for all timers of the core, and advances of the clock.

    For clients an advance is one moment, as long as it takes: their own clocks do not move. What
    they send meanwhile waits at the gate `requests` until no advance goes on.
    """

    __slots__ = ("_advances", "_clock", "_extend_sessions", "_heap", "_sleep", "requests")

    def __init__(
        self,
        heap: TimerHeap,
        clock: ClusterClock,
        extend_sessions: Callable[[int], None] | None = None,
    ) -> None:
        """`extend_sessions` is called with the ms of each advance, before it."""
        self._heap = heap
        self._clock = clock
        self._extend_sessions = extend_sessions
        self._sleep: trio.CancelScope | None = None
        self._advances = 0
        self.requests = PauseGate()
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
            self._heap.run_due(self._clock.now_ms(), TIMERS_PER_TURN)

    async def advance(self, milliseconds: int, *, extend_sessions: bool = True) -> None:
        """Advance the cluster's clock, from deadline to deadline, until all tasks are at rest.

        Timers run in their order, each at its own time. With `extend_sessions` the sessions of
        connected members are extended by the time of the advance. Raises ValueError for a negative
        step and RuntimeError if the run's clock is not an AdjustableClock.
        """
        clock = adjustable_clock()
        async with self._moment() as settle:
            if extend_sessions and self._extend_sessions is not None and milliseconds > 0:
                self._extend_sessions(milliseconds)
            target_ms = self._clock.now_ms() + milliseconds

            def next_deadline() -> float | None:
                # Compared in milliseconds: `trio_time` of the last deadline lies a little behind
                # the target where the clock is frozen at the beginning of a millisecond.
                deadline_ms = self._heap.deadline_ms()
                if deadline_ms is None or deadline_ms > target_ms:
                    return None
                return self._clock.trio_time(deadline_ms)

            await advance(clock, milliseconds / 1000, next_deadline, settle)

    async def advance_domain(
        self, domain: ClockDomain, milliseconds: int, *, extend_sessions: bool = True
    ) -> None:
        """Advance one clock domain only.

        The run's clock does not move, so it may be of any kind. Raises ValueError for a negative
        step.
        """
        if milliseconds < 0:
            raise ValueError(f"a clock moves forward: {milliseconds} ms")
        async with self._moment() as settle:
            if extend_sessions and milliseconds > 0:
                domain.extend_connected_sessions(milliseconds)
            target_ms = domain.now_ms() + milliseconds
            while True:
                await settle()
                deadline_ms = domain.deadline_ms()
                if deadline_ms is None or deadline_ms > target_ms:
                    break
                domain.jump_to(deadline_ms)
            domain.jump_to(target_ms)
            await settle()

    @asynccontextmanager
    async def _moment(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Serve what clients have sent before and after, but nothing meanwhile.

        Before, brokers also notice closed connections. Gives what waits until all tasks are at
        rest.
        """
        from trio.testing import wait_all_tasks_blocked  # imports pytest too, so only when used

        await wait_all_tasks_blocked()
        self._advances += 1
        self.requests.close()
        try:
            yield wait_all_tasks_blocked
        finally:
            self._advances -= 1
            if self._advances == 0:
                self.requests.open()
        await wait_all_tasks_blocked()


def adjustable_clock() -> AdjustableClock:
    """The current run's clock. Raises RuntimeError where it is not an AdjustableClock."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, AdjustableClock):
        raise RuntimeError(
            f"this run's clock is a {type(clock).__name__}; start it with an AdjustableClock"
        )
    return clock
