"""The cluster's clock can be frozen, sped up and advanced, and timers keep their order."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from mockbroker.core.timing.timers import TimerHeap
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.clock.cluster_clock import ClusterClock, Timekeeper


def on_frozen_clock(body) -> None:
    """Run `body(heap, clock, keeper, run's clock)` beside its timekeeper; time stands still."""
    run_clock = AdjustableClock(rate=0.0)

    async def main() -> None:
        heap = TimerHeap()
        clock = ClusterClock(epoch_ms=1_000_000)
        keeper = Timekeeper(heap, clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keeper.run)
            await body(heap, clock, keeper, run_clock)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=run_clock)


def test_an_advance_runs_each_timer_at_its_own_time_and_in_order() -> None:
    """Ten seconds pass in six steps; every timer sees the clock at its deadline."""

    async def body(heap, clock, keeper, run_clock) -> None:
        seen: list[tuple[int, int]] = []
        for at in (6, 1, 5, 2, 4, 3):
            heap.call_at(
                1_000_000 + at * 1000, lambda at=at: seen.append((at, clock.now_ms() - 1_000_000))
            )
        await keeper.advance(10_000)
        assert seen == [(at, at * 1000) for at in range(1, 7)]
        assert clock.now_ms() == 1_010_000

    on_frozen_clock(body)


def test_a_timer_set_on_the_way_runs_within_the_same_advance() -> None:
    """A task that a timer wakes sets the next one before the clock goes on."""

    async def body(heap, clock, keeper, run_clock) -> None:
        beats: list[int] = []
        woken = trio.Event()

        async def beat() -> None:
            await woken.wait()
            heap.call_at(clock.now_ms() + 3_000, lambda: beats.append(clock.now_ms()))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat)
            heap.call_at(1_003_000, woken.set)
            await keeper.advance(9_000)
        assert beats == [1_006_000]

    on_frozen_clock(body)


@pytest.mark.parametrize("hair_s", [0.0, 3e-6, 9e-6, 2e-5, 0.0005])
def test_a_timer_at_the_very_end_of_an_advance_runs(hair_s: float) -> None:
    """Wherever in its millisecond the clock stands."""

    async def body(heap, clock, keeper, run_clock) -> None:
        run_clock.jump_to(run_clock.current_time() + hair_s)
        ran: list[int] = []
        heap.call_at(clock.now_ms() + 5_000, lambda: ran.append(clock.now_ms()))
        await keeper.advance(5_000)
        assert ran == [1_005_000]

    on_frozen_clock(body)


@pytest.mark.parametrize("hair_s", [0.0, 9e-6, 0.0005])
def test_what_is_due_at_once_runs_on_a_frozen_clock(hair_s: float) -> None:
    """Wherever in its millisecond the clock stands."""

    async def body(heap, clock, keeper, run_clock) -> None:
        run_clock.jump_to(run_clock.current_time() + hair_s)
        await trio.testing.wait_all_tasks_blocked()
        ran = trio.Event()
        heap.call_at(clock.now_ms(), ran.set)
        await trio.testing.wait_all_tasks_blocked()
        assert ran.is_set()

    on_frozen_clock(body)


def test_a_frozen_clock_stands_still() -> None:
    """Nothing becomes due, however long it takes in real time."""

    async def body(heap, clock, keeper, run_clock) -> None:
        ran: list[int] = []
        heap.call_at(1_000_001, lambda: ran.append(1))
        before = clock.now_ms()
        await trio.to_thread.run_sync(lambda: sum(range(200_000)))
        assert (clock.now_ms(), ran) == (before, [])

    on_frozen_clock(body)


def test_a_fast_clock_runs_timers_sooner() -> None:
    """At a rate of 100,000, an hour passes in 36 ms of real time."""

    async def body(heap, clock, keeper, run_clock) -> None:
        run_clock.set_rate(100_000)
        done = trio.Event()
        heap.call_at(clock.now_ms() + 3_600_000, done.set)
        await done.wait()
        run_clock.set_rate(0)
        assert clock.now_ms() >= 4_600_000

    on_frozen_clock(body)


def test_a_new_rate_does_not_move_the_time() -> None:
    """Freezing, thawing and speeding up go on from where the clock stands."""
    clock = AdjustableClock(rate=0.0)
    clock.start_clock()
    before = clock.current_time()
    clock.set_rate(1.0)
    clock.set_rate(0.0)
    assert 0.0 <= clock.current_time() - before < 60.0


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf, 1e9])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    """The message says what a rate may be."""
    with pytest.raises(ValueError, match="rate is between 0 and"):
        AdjustableClock().set_rate(rate)


def test_a_clock_moves_forward_only() -> None:
    """A negative advance is refused, and nothing has moved."""

    async def body(heap, clock, keeper, run_clock) -> None:
        with pytest.raises(ValueError, match="moves forward"):
            await keeper.advance(-1)
        assert clock.now_ms() == 1_000_000

    on_frozen_clock(body)


def test_a_clock_that_is_not_ours_is_not_moved() -> None:
    """Under trio's own clock, advancing says what is missing."""

    async def main() -> None:
        keeper = Timekeeper(TimerHeap(), ClusterClock())
        with pytest.raises(RuntimeError, match="AdjustableClock"):
            await keeper.advance(1)

    trio.run(main)
