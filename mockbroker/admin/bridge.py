"""From the admin run into the cluster's run and back, without a thread for each call.

`trio.from_thread.run_sync` would need a worker thread here, because the admin side is itself a trio
run and must not block. So the function is queued with the cluster's token, and the cluster's run
wakes the caller through the admin run's token.
"""

from __future__ import annotations

from collections.abc import Callable
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
        here = trio.lowlevel.current_trio_token()
        answered = trio.Event()
        answers: list[outcome.Outcome[T]] = []

        def back() -> None:
            answered.set()

        def there() -> None:
            answers.append(outcome.capture(function))
            # If the admin side stopped while it waited, nobody wants the answer.
            with suppress(trio.RunFinishedError):
                here.run_sync_soon(back)

        try:
            self._cluster.run_sync_soon(there)
        except trio.RunFinishedError:
            raise ClusterUnavailableError("the cluster has stopped") from None
        with trio.move_on_after(self._timeout_s):
            await answered.wait()
        if not answers:
            raise ClusterUnavailableError(f"the cluster did not answer in {self._timeout_s:g} s")
        return answers[0].unwrap()
