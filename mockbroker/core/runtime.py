"""The runtime of a cluster: time, timers, ids, and the observers of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.ids import IdSource
from mockbroker.core.timing.timers import TimerHeap

if TYPE_CHECKING:
    from mockbroker.core.events import Event
    from mockbroker.core.journal.journal import Journal


class ClockControl(Protocol):
    """Controls the clock of a process. Its methods raise ActionError if that is not possible."""

    def set_rate(self, rate: float) -> None:
        """Run at `rate` seconds a second; 0 freezes the clock."""
        ...

    def advance(self, milliseconds: int) -> None:
        """Advance the clock, from deadline to deadline, once the caller has returned."""
        ...


class Runtime:
    """The clock, timers, ids, events and journal of one process.

    `now_ms` returns the time in ms since the epoch. Equal seeds give equal ids. Without a seed the
    start time is the seed, so that a new cluster has other ids than an old one.
    """

    __slots__ = (
        "after_event",
        "cause",
        "clock_control",
        "ids",
        "journal",
        "limits_exceeded",
        "loads",
        "now_ms",
        "on_event",
        "timers",
    )

    def __init__(self, now_ms: Callable[[], int], seed: int | None = None) -> None:
        self.now_ms = now_ms
        self.timers = TimerHeap()
        self.ids = IdSource(now_ms() if seed is None else seed)
        # Called with each event, in this order (see `events`).
        self.on_event: list[Callable[[Event], None]] = []
        # Called after all of `on_event`; they may emit further events.
        self.after_event: list[Callable[[Event], None]] = []
        # The rule or action that is carried out; empty if the cause is a client or a timer.
        self.cause = ""
        # Controls the clock of `now_ms`; set by the server that runs the cluster.
        self.clock_control: ClockControl | None = None
        self.journal: Journal | None = None
        # How often each protective limit was exceeded, by its config; a counter never falls.
        self.limits_exceeded: Counter[str] = Counter()
        # The loads of coordinators that begin in the next turn, or go on in turns.
        self.loads: dict[object, Iterator[None]] = {}

    def finish_loads(self) -> None:
        """Finish the loads of coordinators now, because an operator looks.

        Those that begin later (`mockbroker.coordinator.load.ms`) are not there yet.
        """
        while self.loads:
            key, load = next(iter(self.loads.items()))
            for _ in load:
                pass
            self.loads.pop(key, None)

    def emit(self, event: Event) -> None:
        """Pass an event to all observers."""
        for observer in self.on_event:
            observer(event)
        for follow in self.after_event:
            follow(event)
