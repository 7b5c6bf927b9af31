"""From the admin run into the cluster's run and back, without a thread for each call.

`trio.from_thread.run_sync` would need a worker thread here, because the admin side is itself a trio
run and must not block. So the function is queued with the cluster's token, and the cluster's run
wakes the caller through the admin run's token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import outcome
import trio

T = TypeVar("T")

# A cluster that lets a look at its counters wait this long, in real time, is not healthy.
ANSWER_TIMEOUT_S = 2.0


class ClusterUnavailableError(Exception):
    """The cluster's run has ended, or did not come round to the call in time."""


class Bridge:
    def __init__(self, token: trio.lowlevel.TrioToken, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._cluster = token
        self._timeout_s = timeout_s

    async def call(self, function: Callable[[], T]) -> T:
        """Run `function()` in the cluster's run; return or raise what it does.

        Raises ClusterUnavailableError when no answer comes within the timeout. The call may still
        run later then, so a function with effects must bear that.
        """

        def there(answer: Callable[[outcome.Outcome[T]], None]) -> None:
            answer(outcome.capture(function))

        return await self._ask(there, self._timeout_s)

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Run `await function()` in a task of the cluster's run; return or raise what it does.

        Raises ClusterUnavailableError as `call` does; what has begun goes on then.
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
            # If the admin side stopped while it waited, nobody wants the answer.
            with suppress(trio.RunFinishedError):
                here.run_sync_soon(answered.set)

        try:
            self._cluster.run_sync_soon(there, answer)
        except trio.RunFinishedError:
            raise ClusterUnavailableError("the cluster has stopped") from None
        with trio.move_on_after(timeout_s):
            await answered.wait()
        if not answers:
            raise ClusterUnavailableError(f"the cluster did not answer in {timeout_s:g} s")
        return answers[0].unwrap()
