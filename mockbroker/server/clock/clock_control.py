"""The run's clock for the core's action `set_clock`, in a rule or a timeline."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.errors import ActionError
from mockbroker.server.clock.cluster_clock import adjustable_clock

if TYPE_CHECKING:
    import trio

    from mockbroker.server.cluster_server import ClusterServer


class RunClock:
    """The clock of the current run; advances take place in `nursery`."""

    def __init__(self, server: ClusterServer, nursery: trio.Nursery) -> None:
        self._server = server
        self._nursery = nursery

    def set_rate(self, rate: float) -> None:
        """Run at `rate`; 0 freezes. Raises ActionError."""
        try:
            self._server.set_clock_rate(rate)
        except (RuntimeError, ValueError) as error:
            raise ActionError(str(error)) from None

    def advance(self, milliseconds: int) -> None:
        """Advance from deadline to deadline, in a task. Raises ActionError."""
        try:
            adjustable_clock()
        except RuntimeError as error:
            raise ActionError(str(error)) from None
        self._nursery.start_soon(partial(self._server.advance_clock, milliseconds))
