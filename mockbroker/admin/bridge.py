"""From the admin run into the cluster's run and back, without a thread for each call.

The admin side is a trio run too and must not block, so `trio.from_thread.run_sync` would need a
worker thread. Instead the function is queued with the cluster's token, and the cluster's run wakes
the caller through the admin run's token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import outcome
import trio

T = TypeVar("T")


class ClusterUnavailableError(Exception):
    """The cluster's run has ended, or did not answer in time."""


class ClusterBusyError(ClusterUnavailableError):
    """The cluster did not answer in time."""


class Bridge:
    """The way into the cluster's run of this token. Timeouts are real time."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self._cluster = token

    async def call(self, function: Callable[[], T], timeout_s: float) -> T:
        """Run `function()` in the cluster's run; returns its result, or raises its error.

        Raises ClusterUnavailableError when no result comes within the timeout. The function may
        still run later.
        """

        def there(answer: Callable[[outcome.Outcome[T]], None]) -> None:
            answer(outcome.capture(function))

        return await self._ask(there, timeout_s)

    def soon(self, function: Callable[[], object]) -> None:
        """Run `function()` in the cluster's run, unless that has ended, without its result."""
        with suppress(trio.RunFinishedError):
            self._cluster.run_sync_soon(function)

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Run `await function()` in a task of the cluster's run, as `call`. After the timeout the
        task continues.
        """

        def there(answer: Callable[[outcome.Outcome[T]], None]) -> None:
            async def task() -> None:
                answer(await outcome.acapture(function))

            trio.lowlevel.spawn_system_task(task)

        return await self._ask(there, timeout_s)

    async def _ask(
        self, there: Callable[[Callable[[outcome.Outcome[T]], None]], None], timeout_s: float
    ) -> T:
        here = trio.lowlevel.current_trio_token()
        answered = trio.Event()
        answers: list[outcome.Outcome[T]] = []

        def answer(found: outcome.Outcome[T]) -> None:
            answers.append(found)
            # The admin side may have stopped meanwhile.
            with suppress(trio.RunFinishedError):
                here.run_sync_soon(answered.set)

        try:
            self._cluster.run_sync_soon(there, answer)
        except trio.RunFinishedError:
            raise ClusterUnavailableError("the cluster has stopped") from None
        with trio.move_on_after(timeout_s):
            await answered.wait()
        if not answers:
            raise ClusterBusyError(f"the cluster did not answer in {timeout_s:g} s")
        return answers[0].unwrap()
