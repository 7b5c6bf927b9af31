"""What one process lends its cluster: time, timers, ids, and everybody who watches its events.

A state machine that needs no more than these takes the runtime and not the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.ids import IdSource
from mockbroker.core.timing.timers import TimerHeap

if TYPE_CHECKING:
    from mockbroker.core.events import Event
    from mockbroker.core.journal.journal import Journal


class ClockControl(Protocol):
    """Moves the clock of a process. Its methods raise ActionError where it cannot be moved."""

    def set_rate(self, rate: float) -> None:
        """Run at `rate` seconds a second, 0 to stand still."""
        ...

    def advance(self, milliseconds: int) -> None:
        """Move on, from deadline to deadline, as soon as the caller is done."""
        ...


class Runtime:
    """The clock, timers, ids, events and journal of one process.

    `now_ms` gives the time in ms since the epoch. Equal seeds give equal ids; without a seed the
    time of the start serves, so that a new cluster is not taken for an old one.
    """

    __slots__ = (
        "after_event",
        "cause",
        "clock_control",
        "ids",
        "journal",
        "now_ms",
        "on_event",
        "timers",
    )

    def __init__(self, now_ms: Callable[[], int], seed: int | None = None) -> None:
        self.now_ms = now_ms
        self.timers = TimerHeap()
        self.ids = IdSource(now_ms() if seed is None else seed)
        # Called with every event, in this order (see `events`).
        self.on_event: list[Callable[[Event], None]] = []
        # Called once all of these have the event; they may emit what follows from it.
        self.after_event: list[Callable[[Event], None]] = []
        # The rule or action that is being carried out; empty where clients or time are the cause.
        self.cause = ""
        # Moves the clock that `now_ms` reads; the server that runs the cluster sets it.
        self.clock_control: ClockControl | None = None
        self.journal: Journal | None = None

    def emit(self, event: Event) -> None:
        """Hand an event to every observer."""
        for observer in self.on_event:
            observer(event)
        for follow in self.after_event:
            follow(event)
