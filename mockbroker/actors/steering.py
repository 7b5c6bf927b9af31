"""A clock for a trio run that can be frozen, sped up, slowed down and moved forward by hand.

The clock normally follows real time. `advance` moves it from deadline to deadline: at each one the
timers run and the run settles before the clock goes on, so what happens in 45 seconds happens in
their order, in milliseconds. One jump instead would wake all sleepers at its end, in any order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable

import trio

# What trio is told to sleep on a frozen clock; it wakes up for I/O and for calls from outside.
FROZEN_SLEEP_S = 24 * 3600.0
RATE_MAX = 1e6


class SteerableClock(trio.abc.Clock):
    """Real time times `rate`, plus what it was moved by. Belongs to one run; use it in that run."""

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
        """Run at `rate` from now on. Raises ValueError for what is no rate."""
        if not (math.isfinite(rate) and 0.0 <= rate <= RATE_MAX):
            raise ValueError(f"a clock's rate is between 0 and {RATE_MAX:.0f}, not {rate}")
        self._rebase(self.current_time())
        self._rate = rate

    def jump_to(self, virtual: float) -> None:
        """Move forward to `virtual` (seconds on this clock); a time that has passed is ignored."""
        now = self.current_time()
        self._rebase(max(now, virtual))

    def _rebase(self, virtual: float) -> None:
        self._at_real = time.perf_counter()
        self._at_virtual = virtual


async def advance(
    clock: SteerableClock,
    seconds: float,
    next_deadline: Callable[[], float | None],
    settle: Callable[[], Awaitable[None]],
) -> None:
    """Move `clock` on by `seconds`, stopping at each deadline on the way.

    `next_deadline` tells the earliest one (seconds on the clock, None if there is none on the
    way); `settle` returns once everything that it woke has come to rest. Raises ValueError for a
    negative step.
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
