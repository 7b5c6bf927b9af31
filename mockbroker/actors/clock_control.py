"""The clock of a run in the hands of the core's actions: `set_clock` in a rule or a timeline."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mockbroker.actors.clock import steerable_clock
from mockbroker.core.errors import ActionError

if TYPE_CHECKING:
    import trio

    from mockbroker.actors.server import ClusterServer


class RunClock:
    """Steers the clock of the run that it is made in; moving on takes place in `nursery`."""

    def __init__(self, server: ClusterServer, nursery: trio.Nursery) -> None:
        self._server = server
        self._nursery = nursery

    def set_rate(self, rate: float) -> None:
        """Run at `rate`, 0 to stand still. Raises ActionError."""
        try:
            self._server.set_clock_rate(rate)
        except (RuntimeError, ValueError) as error:
            raise ActionError(str(error)) from None

    def advance(self, milliseconds: int) -> None:
        """Move on, from deadline to deadline, as soon as the caller is done. Raises ActionError."""
        try:
            steerable_clock()
        except RuntimeError as error:
            raise ActionError(str(error)) from None
        self._nursery.start_soon(partial(self._server.move_on, milliseconds))
