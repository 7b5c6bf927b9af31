"""Time that stands still until everybody waits, and an order of tasks that comes from a seed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing

from mockbroker.simulation import virtual_run as module
from mockbroker.simulation.virtual_run import (
    DeadlockError,
    VirtualClock,
    virtual_clock,
    virtual_run,
)


async def order_of(tasks: int) -> list[int]:
    """The order in which so many tasks come to their turns, three for each."""
    turns: list[int] = []

    async def take_turns(number: int) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            turns.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(take_turns, number)
    return turns


def test_a_seed_decides_the_order_of_all_tasks() -> None:
    orders = [tuple(virtual_run(order_of, 8, seed=seed)) for seed in range(6)]
    assert orders == [tuple(virtual_run(order_of, 8, seed=seed)) for seed in range(6)]
    assert len(set(orders)) == 6


def test_a_run_in_another_thread_has_its_own_order() -> None:
    """Neither a second virtual run nor a plain one changes what a seed gives."""
    alone = virtual_run(order_of, 8, seed=1)
    found: list[list[int]] = []

    async def beside_others() -> list[int]:
        def other() -> None:
            trio.run(order_of, 5)
            found.append(virtual_run(order_of, 8, seed=2))

        thread = threading.Thread(target=other)
        thread.start()
        turns = await order_of(8)
        thread.join()
        return turns

    assert virtual_run(beside_others, seed=1) == alone
    assert found == [virtual_run(order_of, 8, seed=2)]


def test_trio_is_as_before_afterwards() -> None:
    before = module._run._r, module._run._ALLOW_DETERMINISTIC_SCHEDULING

    async def fail() -> None:
        assert module._run._ALLOW_DETERMINISTIC_SCHEDULING
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        virtual_run(fail, seed=1)
    assert (module._run._r, module._run._ALLOW_DETERMINISTIC_SCHEDULING) == before


def test_a_trio_without_the_hook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module._run, "_ALLOW_DETERMINISTIC_SCHEDULING")
    with pytest.raises(RuntimeError, match="has no _ALLOW_DETERMINISTIC_SCHEDULING"):
        virtual_run(order_of, 1, seed=1)


def test_an_hour_passes_at_once_and_in_order() -> None:
    """Sleepers of trio, those of the clock and its callbacks go by one time."""

    async def main() -> tuple[list[object], float]:
        clock = virtual_clock()
        seen: list[object] = []

        async def sleep(sleeper: Callable[[float], object], seconds: float) -> None:
            await sleeper(seconds)  # type: ignore[misc]
            seen.append(seconds)

        clock.call_at(1800.0, lambda: seen.append("half"))
        clock.call_at(900.0, lambda: seen.append("never")).cancel()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleep, clock.sleep, 3600.0)
            with trio.move_on_after(2700.0):
                nursery.start_soon(sleep, clock.sleep, 5.0)
                await trio.Event().wait()
            seen.append("timeout")
        return seen, trio.current_time()

    assert virtual_run(main, seed=1) == ([5.0, "half", "timeout", 3600.0], 3600.0)


def test_what_is_due_at_one_time_finds_that_time() -> None:
    """A callback may ask for another one at the same time."""

    async def main() -> list[float]:
        clock = virtual_clock()
        seen: list[float] = []

        def again() -> None:
            seen.append(clock.current_time())
            if len(seen) < 3:
                clock.call_at(clock.current_time(), again)

        clock.call_at(2.0, again)
        await clock.sleep(3.0)
        return seen

    assert virtual_run(main, seed=1) == [2.0, 2.0, 2.0]


def test_a_sleep_can_be_cancelled() -> None:
    async def main() -> float:
        with trio.move_on_after(1.0) as scope:
            await virtual_clock().sleep(10.0)
        assert scope.cancelled_caught
        return trio.current_time()

    assert virtual_run(main, seed=1) == 1.0


def test_time_does_not_overtake_those_who_wait_for_all_others() -> None:
    """`wait_all_tasks_blocked` comes before the next deadline, as with trio's MockClock."""

    async def main() -> float:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(virtual_clock().sleep, 10.0)
            await trio.testing.wait_all_tasks_blocked()
            at = trio.current_time()
            nursery.cancel_scope.cancel()
        return at

    assert virtual_run(main, seed=1) == 0.0


def test_a_run_that_cannot_go_on_ends() -> None:
    async def main() -> None:
        virtual_clock().patience_s = 0.05
        await virtual_clock().sleep(7.0)
        await trio.Event().wait()

    with pytest.raises(DeadlockError, match="after 7 s of virtual time"):
        virtual_run(main, seed=1)


def test_a_thread_may_wake_a_run_that_has_waited_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time: only a limit that nobody reaches ends this run."""
    monkeypatch.setattr("mockbroker.simulation.virtual_run.WAITS_MAX", 10_000)

    async def main() -> float:
        virtual_clock().patience_s = 0.05
        event = trio.Event()
        token = trio.lowlevel.current_trio_token()
        threading.Timer(0.06, lambda: token.run_sync_soon(event.set)).start()
        await event.wait()
        return trio.current_time()

    assert virtual_run(main, seed=1) == 0.0


def test_virtual_time_has_no_rate_and_can_be_moved_on() -> None:
    async def main() -> float:
        clock = virtual_clock()
        clock.jump_to(5.0)
        clock.jump_to(1.0)
        with pytest.raises(RuntimeError, match="every task waits"):
            clock.set_rate(2.0)
        return clock.current_time()

    assert virtual_run(main, seed=1) == 5.0


def test_there_is_a_virtual_clock_in_virtual_runs_only() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="virtual_run"):
            virtual_clock()

    trio.run(main)
    assert VirtualClock(3).seed == 3


def test_the_order_of_other_threads_is_drawn_by_trio_itself() -> None:
    """`_SchedulingGenerator` uses a seeded generator in the threads that have one, and no other."""
    orders = module._SchedulingGenerator()
    with orders.seeded(random.Random(1)):
        batch = list(range(50))
        orders.shuffle(batch)
        expected = list(range(50))
        random.Random(1).shuffle(expected)
        assert batch == expected
        drawn: list[float] = []
        plain = module._run._r
        assert plain is orders
        thread = threading.Thread(target=lambda: drawn.append(orders.random()))
        thread.start()
        thread.join()
        assert 0.0 <= drawn[0] < 1.0
        assert 1.0 <= orders.uniform(1.0, 2.0) <= 2.0
