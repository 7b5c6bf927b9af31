"""Limits of real time hold in a run whose clock stands still."""

from __future__ import annotations

import threading

import pytest
import trio

from mockbroker.server.clock import real_time
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from tests.support.timers import waiting_timers


def frozen() -> AdjustableClock:
    clock = AdjustableClock()
    clock.set_rate(0.0)
    return clock


def test_a_scope_ends_after_real_time_though_the_clock_is_frozen() -> None:
    async def main() -> bool:
        with real_time.move_on_after(0.001) as scope:
            await trio.sleep_forever()
        return scope.cancelled_caught

    assert trio.run(main, clock=frozen())


def test_a_block_that_ends_in_time_is_not_cancelled_and_leaves_no_thread() -> None:
    async def main() -> bool:
        with real_time.move_on_after(1000) as scope:
            await trio.lowlevel.checkpoint()
        return scope.cancelled_caught

    assert not trio.run(main, clock=frozen())
    assert not waiting_timers()


def test_a_timer_of_a_run_that_has_ended_calls_nothing() -> None:
    calls: list[str] = []

    async def main() -> threading.Timer:
        return real_time.call_after(1000, lambda: calls.append("late"))

    timer = trio.run(main)
    timer.cancel()
    timer.function()
    assert calls == []


@pytest.mark.trio
async def test_a_function_is_called_in_the_run_that_set_the_timer() -> None:
    called = trio.Event()
    threads: list[int] = []

    def function() -> None:
        threads.append(threading.get_ident())
        called.set()

    real_time.call_after(0.001, function)
    await called.wait()
    assert threads == [threading.get_ident()]
