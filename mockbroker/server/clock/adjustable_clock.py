"""A clock for a trio run that can be frozen, sped up, slowed down and advanced.

By default the clock follows real time. `advance` moves it from deadline to deadline: at each one
the timers run and the tasks come to rest before the clock moves again. The timers of 45 seconds run
in their order, within milliseconds. A jump would wake all sleepers at its end, in any order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable

import trio

# trio's sleep on a frozen clock; I/O and calls from other threads still wake it.
FROZEN_SLEEP_S = 24 * 3600.0
RATE_MAX = 1e6


class AdjustableClock(trio.abc.Clock):
    """Real time times `rate`, plus all advances. It belongs to one run."""

    def __init__(self, rate: float = 1.0) -> None:
        self._rate = rate
        self._at_real = 0.0
        self._at_virtual = 0.0

    def start_clock(self) -> None:
        self._at_real = time.perf_counter()
        self._at_virtual = self._at_real

    def current_time(self) -> float:
        if self._rate == 0.0:
            return self._at_virtual
        return self._at_virtual + (time.perf_counter() - self._at_real) * self._rate

    def deadline_to_sleep_time(self, deadline: float) -> float:
        left = deadline - self.current_time()
        if left <= 0.0:
            return 0.0
        return FROZEN_SLEEP_S if self._rate == 0.0 else left / self._rate

    @property
    def rate(self) -> float:
        """Seconds of the run for each second of real time; 0 when frozen."""
        return self._rate

    def set_rate(self, rate: float) -> None:
        """Run at `rate` from now on. Raises ValueError outside 0..RATE_MAX."""
        if not (math.isfinite(rate) and 0.0 <= rate <= RATE_MAX):
            raise ValueError(f"a clock's rate is between 0 and {RATE_MAX:.0f}, not {rate}")
        self._rebase(self.current_time())
        self._rate = rate

    def jump_to(self, virtual: float) -> None:
        """Jump to `virtual` (seconds on this clock); a time in the past is ignored."""
        self._rebase(max(self.current_time(), virtual))

    def _rebase(self, virtual: float) -> None:
        self._at_real = time.perf_counter()
        self._at_virtual = virtual


async def advance(
    clock: AdjustableClock,
    seconds: float,
    next_deadline: Callable[[], float | None],
    settle: Callable[[], Awaitable[None]],
) -> None:
    """Advance `clock` by `seconds`, with a stop at each deadline.

    `next_deadline` returns the earliest one (seconds on the clock; None if none is before the end);
    `settle` returns once all tasks are at rest. Raises ValueError for a negative step.
    """
    if not (math.isfinite(seconds) and seconds >= 0.0):
        raise ValueError(f"a clock moves forward: {seconds} s")
    target = clock.current_time() + seconds
    while True:
        await settle()
        deadline = next_deadline()
        if deadline is None:
            break
        clock.jump_to(deadline)
    clock.jump_to(target)
    await settle()
