"""A trio run in which time is virtual and the order of all wake-ups comes from a seed.

    virtual_run(main, seed=7)

The clock does not move while a task can run. When all tasks wait, it jumps to the next deadline.
Waiting takes no real time, and each run has the same events at the same times.

Only this module uses trio's private names (`trio._core._run`):

- `_ALLOW_DETERMINISTIC_SCHEDULING` and `_r`: trio shuffles the tasks that run next, so that no code
  relies on their order. With the first one set, it sorts them before, so that the shuffle depends
  only on the generator. trio has this for Hypothesis.
- `GLOBAL_RUN_CONTEXT.runner.waiting_for_idle`: tasks in `wait_all_tasks_blocked` run before the
  clock moves, as with trio's MockClock.
"""

from __future__ import annotations

import heapq
import math
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio

from mockbroker.server.clock.adjustable_clock import FROZEN_SLEEP_S, AdjustableClock

T = TypeVar("T")

FOREVER_S = 1e12
"""Later deadlines are ignored."""
PATIENCE_S = 5.0
"""The real time for which a run waits for threads and sockets when no deadline is due."""
WAITS_MAX = 2
"""After as many waits without an event the run is deadlocked."""

_run: Any = trio._core._run
_HOOKS = ("_ALLOW_DETERMINISTIC_SCHEDULING", "_r", "GLOBAL_RUN_CONTEXT")


class DeadlockError(Exception):
    """A virtual run cannot go on."""


class Due:
    """One callback at one time of the virtual clock."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock(AdjustableClock):
    """A clock that jumps to the next deadline when all tasks wait. It starts at 0.

    It also runs callbacks (`call_at`), which are far cheaper than sleeping tasks. It jumps when
    trio calls `deadline_to_sleep_time`, which trio does when no task can run. A task that waits for
    a thread or a socket waits in real time; the clock does not wait for it.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(0.0)
        self.seed = seed  # of the run
        self.now_s = 0.0  # since the run began
        self.moved_to_s = -math.inf  # the target of the last advance
        self.patience_s = PATIENCE_S
        self.on_deadlock: Callable[[], object] = lambda: None
        self._asked_s = math.inf
        self._waits = 0
        self._due: list[tuple[float, int, Due]] = []  # a heap; tuples compare fast
        self._seq = 0

    def start_clock(self) -> None:
        """Called by trio when the run begins."""

    def current_time(self) -> float:
        """Seconds since the run began."""
        return self.now_s

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to the next callback or to trio's `deadline`, whichever is first."""
        if _run.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:
            return FROZEN_SLEEP_S
        due = self._due
        while due and due[0][2].callback is None:
            heapq.heappop(due)
        if due and due[0][0] <= deadline:
            now = self.now_s = max(self.now_s, due[0][0])
            while due and due[0][0] <= now:
                callback = heapq.heappop(due)[2].callback
                if callback is not None:
                    callback()
            return 0.0
        if deadline < FOREVER_S:
            self.now_s = max(self.now_s, deadline)
            return 0.0
        return self._wait_for_others()

    def _wait_for_others(self) -> float:
        """Wait in real time for threads and sockets, which alone can wake a task; not forever."""
        asked_s, self._asked_s = self._asked_s, time.perf_counter()
        waited = self._asked_s - asked_s >= self.patience_s
        self._waits = self._waits + 1 if waited else 0
        if self._waits == WAITS_MAX:
            self.on_deadlock()
            return 0.0
        return self.patience_s

    def call_at(self, at_s: float, callback: Callable[[], object]) -> Due:
        """Call `callback` at `at_s`, when no task can run; it must not raise."""
        self._seq += 1
        due = Due(callback)
        heapq.heappush(self._due, (at_s, self._seq, due))
        return due

    async def sleep(self, seconds: float) -> None:
        """As `trio.sleep`, at a fifth of its cost."""
        task = trio.lowlevel.current_task()
        due = self.call_at(self.now_s + seconds, lambda: trio.lowlevel.reschedule(task))

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            due.cancel()
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def jump_to(self, virtual: float) -> None:
        """As `AdjustableClock.jump_to`."""
        self.now_s = self.moved_to_s = max(self.now_s, virtual)

    def set_rate(self, rate: float) -> None:
        """Raises RuntimeError: virtual time has no rate."""
        raise RuntimeError(
            f"virtual time passes when every task waits, and not at a rate of {rate}"
        )


class _SchedulingGenerator:
    """Replaces trio's generator during virtual runs.

    Each thread with a virtual run has a seeded generator, other threads trio's own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, random.Random] = {}
        self._plain = random.Random()
        self._allowed_before = False

    @contextmanager
    def seeded(self, rng: random.Random) -> Iterator[None]:
        """Draw the order of this thread's tasks from `rng`."""
        missing = [name for name in _HOOKS if not hasattr(_run, name)]
        if missing:
            raise RuntimeError(
                f"trio {trio.__version__} has no {', '.join(missing)}, which a seeded order of "
                "tasks needs; trio 0.35 has it"
            )
        thread = threading.get_ident()
        with self._lock:
            if not self._by_thread:
                self._plain, self._allowed_before = _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING
                _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING = self, True
            self._by_thread[thread] = rng
        try:
            yield
        finally:
            with self._lock:
                del self._by_thread[thread]
                if not self._by_thread:
                    _run._r, _run._ALLOW_DETERMINISTIC_SCHEDULING = (
                        self._plain,
                        self._allowed_before,
                    )

    # The methods that trio calls.

    def shuffle(self, batch: list[Any]) -> None:
        if len(batch) > 1:
            self._by_thread.get(threading.get_ident(), self._plain).shuffle(batch)

    def random(self) -> float:
        return self._by_thread.get(threading.get_ident(), self._plain).random()

    def uniform(self, low: float, high: float) -> float:
        return self._plain.uniform(low, high)


_GENERATOR = _SchedulingGenerator()


def virtual_run(main: Callable[..., Awaitable[T]], *args: Any, seed: int) -> T:
    """`trio.run(main, *args)` in virtual time; `seed` decides the order of all tasks.

    Two runs with one seed are equal, unless their code uses a real clock, a thread, a socket or an
    unseeded generator. Raises RuntimeError for an unsupported version of trio, and DeadlockError if
    all tasks wait and no deadline is due.
    """
    clock = VirtualClock(seed)

    async def watched() -> T:
        with trio.CancelScope() as scope:
            clock.on_deadlock = scope.cancel
            return await main(*args)
        raise DeadlockError(
            f"after {clock.current_time():g} s of virtual time all tasks wait and no deadline is "
            "due"
        )

    with _GENERATOR.seeded(random.Random(f"{seed}/tasks")):
        return trio.run(watched, clock=clock)


def virtual_clock() -> VirtualClock:
    """The clock of the current run. Raises RuntimeError outside of `virtual_run`."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, VirtualClock):
        raise RuntimeError(
            f"this run's clock is a {type(clock).__name__}; start the run with virtual_run(…)"
        )
    return clock
