"""Exchanges whose response is not complete yet, and the sending of their responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import outcome
import trio

from mockbroker.handlers.base import Parked
from mockbroker.server.network.pause_gate import PauseGate
from mockbroker.server.network.transport import Buffer

# Wakes a task whose response is complete while the broker is paused.
_WITHHELD = object()


class PendingExchange:
    """A request with a parked reply."""

    __slots__ = ("_answer", "_gate", "_parked")

    def __init__(
        self,
        parked: Parked[Any],
        answer: Callable[[object], Sequence[Buffer] | None],
        gate: PauseGate,
    ) -> None:
        self._parked = parked
        self._answer = answer
        self._gate = gate

    @property
    def force_complete(self) -> Callable[[], None] | None:
        """Completes the reply with the available records; None if that is impossible."""
        return self._parked.force_complete

    async def sent(self) -> Sequence[Buffer] | None:
        """Sleep until the reply is complete and sent; returns the result of `answer`.

        The task that completes the reply sends it before this task runs again: a Fetch gets its
        records while their Produce is still handled, one turn of the event loop earlier. An error
        of the sending is raised here, because it belongs to this connection. The reply of a paused
        broker waits until it is resumed.
        """
        parked = self._parked
        task = trio.lowlevel.current_task()

        def answer() -> None:
            parked.on_complete = None
            if self._gate.shut:
                # An outcome can be unwrapped once, so each task gets its own.
                trio.lowlevel.reschedule(task, outcome.Value(_WITHHELD))
            else:
                sent = outcome.capture(lambda: self._answer(parked.response))
                trio.lowlevel.reschedule(task, sent)

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            parked.on_complete = None
            return trio.lowlevel.Abort.SUCCEEDED

        parked.on_complete = answer
        sent: Sequence[Buffer] | None = await trio.lowlevel.wait_task_rescheduled(abort)
        if sent is _WITHHELD:
            await self._gate.wait()
            sent = self._answer(parked.response)
        return sent
