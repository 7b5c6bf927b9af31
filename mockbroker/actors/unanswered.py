"""Requests whose replies are parked, and how they are sent once they are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import outcome
import trio

from mockbroker.actors.broker_host import Gate
from mockbroker.actors.transport import Buffer
from mockbroker.handlers.base import Parked

# A task is woken with this when its answer is there but may not be sent yet.
_WITHHELD = object()


class Unanswered:
    """A request whose reply is parked, and what sends the reply once it is there."""

    __slots__ = ("_answer", "_gate", "_parked")

    def __init__(
        self,
        parked: Parked[Any],
        answer: Callable[[object], Sequence[Buffer] | None],
        gate: Gate,
    ) -> None:
        self._parked = parked
        self._answer = answer
        self._gate = gate

    @property
    def hurry(self) -> Callable[[], None] | None:
        """Completes the reply with what there is; None where it takes as long as it takes."""
        return self._parked.hurry

    async def sent(self) -> Sequence[Buffer] | None:
        """Sleep until the reply is there and has been sent; returns what sending it returned.

        It is sent by whoever completes it, before this task runs again: a consumer that waits gets
        its records while their Produce is still being handled, one turn of the event loop earlier.
        What goes wrong then belongs to this connection, so it is raised here. A paused broker's
        answer waits until it is resumed.
        """
        parked = self._parked
        task = trio.lowlevel.current_task()

        def answer() -> None:
            parked.on_complete = None
            if self._gate.shut:
                # An outcome can be unwrapped once, so each task gets its own.
                trio.lowlevel.reschedule(task, outcome.Value(_WITHHELD))
            else:
                sent = outcome.capture(self._answer, parked.response)
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
