"""The timekeeper runs the core's timers by the run's clock, never by real time."""

from __future__ import annotations

import trio
import trio.testing

from mockbroker.core.timing.timers import TimerHeap
from mockbroker.server.clock.cluster_clock import ClusterClock, Timekeeper

HOUR_MS = 3_600_000


def run_with_keeper(body) -> None:
    """Run `body(heap, clock, mock clock)` beside a timekeeper, on a clock that only moves by
    hand.
    """
    mock = trio.testing.MockClock()

    async def main() -> None:
        heap = TimerHeap()
        clock = ClusterClock(epoch_ms=1_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Timekeeper(heap, clock).run)
            await trio.testing.wait_all_tasks_blocked()
            await body(heap, clock, mock)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=mock)


def test_a_timer_runs_at_its_deadline_and_not_a_millisecond_before() -> None:
    """Deadlines are exact to the millisecond, an hour away as well."""

    async def body(heap, clock, mock) -> None:
        ran: list[int] = []
        heap.call_at(1_000 + HOUR_MS, lambda: ran.append(clock.now_ms()))
        mock.jump(HOUR_MS / 1000 - 0.001)
        await trio.testing.wait_all_tasks_blocked()
        assert ran == []
        mock.jump(0.0011)
        await trio.testing.wait_all_tasks_blocked()
        assert ran == [1_000 + HOUR_MS]

    run_with_keeper(body)


def test_an_earlier_timer_shortens_the_running_sleep() -> None:
    """A timer set while the keeper sleeps for a later one is not late."""

    async def body(heap, clock, mock) -> None:
        ran: list[str] = []
        heap.call_at(11_000, lambda: ran.append("late"))
        await trio.testing.wait_all_tasks_blocked()
        heap.call_at(2_000, lambda: ran.append("early"))
        mock.jump(1.001)
        await trio.testing.wait_all_tasks_blocked()
        assert ran == ["early"]
        mock.jump(9)
        await trio.testing.wait_all_tasks_blocked()
        assert ran == ["early", "late"]

    run_with_keeper(body)


def test_a_cancelled_timer_never_runs_and_leaves_no_deadline() -> None:
    """Cancelling the only timer leaves the keeper nothing to wake up for."""

    async def body(heap, clock, mock) -> None:
        ran: list[str] = []
        heap.call_at(2_000, lambda: ran.append("cancelled")).cancel()
        assert heap.deadline_ms() is None
        mock.jump(100)
        await trio.testing.wait_all_tasks_blocked()
        assert ran == []

    run_with_keeper(body)


def test_a_timer_may_set_the_next_one() -> None:
    """A callback that sets a timer for now runs it in the same turn; one for later waits."""

    async def body(heap, clock, mock) -> None:
        ran: list[int] = []

        def again() -> None:
            ran.append(clock.now_ms())
            if len(ran) < 3:
                heap.call_at(clock.now_ms() + 1_000, again)

        heap.call_at(2_000, again)
        for _ in range(3):
            mock.jump(1.0001)
            await trio.testing.wait_all_tasks_blocked()
        assert len(ran) == 3

    run_with_keeper(body)
