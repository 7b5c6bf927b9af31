"""A trio run in which time is virtual and the order of all wake-ups comes from a seed.

    virtual_run(main, seed=7)

Time stands still while any task can go on. When all wait, the clock jumps to the next deadline, so
ten minutes of waiting take no time, and the same things happen at the same times in each run.

This module is the only one that touches what trio keeps to itself (`trio._core._run`):

- `_ALLOW_DETERMINISTIC_SCHEDULING` and `_r`: trio shuffles the tasks that are to run next, so that
  nobody relies on their order. With the first one set, it sorts them before, so that the shuffle
  depends on the generator alone. trio has this for Hypothesis.
- `GLOBAL_RUN_CONTEXT.runner.waiting_for_idle`: tasks in `wait_all_tasks_blocked` go on before the
  clock moves, as they do with trio's MockClock.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio

from mockbroker.actors.steering import FROZEN_SLEEP_S, SteerableClock

T = TypeVar("T")

FOREVER_S = 1e12
"""A deadline as late as this is none."""

_run: Any = trio._core._run
_HOOKS = ("_ALLOW_DETERMINISTIC_SCHEDULING", "_r", "GLOBAL_RUN_CONTEXT")


class Due:
    """One callback at one time of the virtual clock; `cancel()` forgets it."""

    __slots__ = ("at_s", "callback", "seq")

    def __init__(self, at_s: float, seq: int, callback: Callable[[], object]) -> None:
        self.at_s = at_s
        self.seq = seq
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Due) -> bool:
        return (self.at_s, self.seq) < (other.at_s, other.seq)


class VirtualClock(SteerableClock):
    """Stands still while a task can run, and jumps to the next deadline when all wait.

    It runs callbacks of its own on the way (`call_at`), which is far cheaper than a task that
    sleeps. It starts at 0. Its jumps come from trio's question how long to wait for I/O, which trio
    asks when no task can run. A task that waits for a thread or a socket waits in real time: the
    clock does not wait for it.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(0.0)
        self.seed = seed  # of the run
        self._now_s = 0.0
        self._due: list[Due] = []
        self._seq = 0

    def start_clock(self) -> None:
        """Called by trio when the run begins."""

    def current_time(self) -> float:
        """Seconds since the run began."""
        return self._now_s

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Move on to the next thing that is due, the deadline that trio has included."""
        if _run.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:
            return FROZEN_SLEEP_S
        due = self._due
        while due and due[0].callback is None:
            heapq.heappop(due)
        if due and due[0].at_s <= deadline:
            now = self._now_s = max(self._now_s, due[0].at_s)
            while due and due[0].at_s <= now:
                callback = heapq.heappop(due).callback
                if callback is not None:
                    callback()
            return 0.0
        if deadline >= FOREVER_S:
            return FROZEN_SLEEP_S  # only something outside of the run can wake it
        self._now_s = max(self._now_s, deadline)
        return 0.0

    def call_at(self, at_s: float, callback: Callable[[], object]) -> Due:
        """Call `callback` at `at_s`, when no task can run; it must not raise."""
        self._seq += 1
        due = Due(at_s, self._seq, callback)
        heapq.heappush(self._due, due)
        return due

    async def sleep(self, seconds: float) -> None:
        """As `trio.sleep`, at a fifth of its cost."""
        task = trio.lowlevel.current_task()
        due = self.call_at(self._now_s + seconds, lambda: trio.lowlevel.reschedule(task))

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            due.cancel()
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def jump_to(self, virtual: float) -> None:
        """As `SteerableClock.jump_to`."""
        self._now_s = max(self._now_s, virtual)

    def set_rate(self, rate: float) -> None:
        """Raises RuntimeError: virtual time has no rate."""
        raise RuntimeError(
            f"virtual time passes when every task waits, and not at a rate of {rate}"
        )


class _Orders:
    """Stands in for trio's generator: seeded in the threads of virtual runs, not in others."""

    def __init__(self, plain: random.Random) -> None:
        self.plain = plain
        self.by_thread: dict[int, random.Random] = {}

    def shuffle(self, batch: list[Any]) -> None:
        if len(batch) > 1:
            self.by_thread.get(threading.get_ident(), self.plain).shuffle(batch)

    def random(self) -> float:
        return self.by_thread.get(threading.get_ident(), self.plain).random()

    def uniform(self, low: float, high: float) -> float:
        return self.plain.uniform(low, high)


_lock = threading.Lock()
_orders: _Orders | None = None
_allowed_before = False


@contextmanager
def _seeded_order(rng: random.Random) -> Iterator[None]:
    """Let trio draw the order of this thread's tasks from `rng`. Other threads are left alone."""
    global _orders, _allowed_before
    missing = [name for name in _HOOKS if not hasattr(_run, name)]
    if missing:
        raise RuntimeError(
            f"trio {trio.__version__} has no {', '.join(missing)}, which a seeded order of tasks "
            "needs; it is known to work with trio 0.35"
        )
    thread = threading.get_ident()
    with _lock:
        if _orders is None:
            _orders, _allowed_before = _Orders(_run._r), _run._ALLOW_DETERMINISTIC_SCHEDULING
            _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING = _orders, True
        _orders.by_thread[thread] = rng
    try:
        yield
    finally:
        with _lock:
            del _orders.by_thread[thread]
            if not _orders.by_thread:
                _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING = _orders.plain, _allowed_before
                _orders = None


def virtual_run(main: Callable[..., Awaitable[T]], *args: Any, seed: int) -> T:
    """`trio.run(main, *args)` in virtual time, with all tasks in an order that `seed` decides.

    Two runs with one seed do the same, as long as nothing in them asks a real clock, a thread, a
    socket or a generator without a seed. Raises RuntimeError for a trio that cannot do that.
    """

    with _seeded_order(random.Random(f"{seed}/tasks")):
        return trio.run(main, *args, clock=VirtualClock(seed))


def virtual_clock() -> VirtualClock:
    """The clock of the current run. Raises RuntimeError outside of `virtual_run`."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, VirtualClock):
        raise RuntimeError(
            f"this run's clock is a {type(clock).__name__}; start the run with virtual_run(…)"
        )
    return clock
