"""What a law is, and what it may say.

There are two kinds. A *law of the history* judges what clients were told, and the logs as they are
at the end: it holds for any cluster, whoever runs it. A *law of the state* looks into the brokers
of a simulated cluster while it lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.events import Event
from mockbroker.core.partition import Partition
from mockbroker.simulation.history import History
from mockbroker.simulation.logs import LogView
from mockbroker.simulation.observe import ReplicaView

if TYPE_CHECKING:
    from mockbroker.simulation.laws import Laws

Key = tuple[bytes, int]  # topic id and partition

TIME_GOES_ON = "time goes on"  # broken by what goes round and round without any time passing
NO_FAILURES = "handlers and the core do not fail"

VIOLATIONS_MAX = 20  # of one simulation; what is broken is rarely broken once


class Violation(NamedTuple):
    """A law that was broken: what was seen, after which step of the plan, and when, in ms since
    the start.
    """

    law: str
    message: str
    step: int
    at_ms: int

    def __str__(self) -> str:
        return f"{self.law}: {self.message} (after step {self.step}, at {self.at_ms} ms)"


class Judge:
    """What laws of the history judge by, and what they found.

    Whoever runs a plan sets `step` as it goes on, and `logs` and `unsettled` once it is over.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.start_ms = history.now_ms()
        self.step = -1  # the number of the step that was performed last
        self.violations: list[Violation] = []
        self.logs: list[LogView] = []
        self.unsettled: list[str] = []  # what has not come to rest, in a sentence each
        # Partitions in which a transaction was ended by hand, and in which readers may have seen
        # what was lost later.
        self.meddled: set[Key] = set()
        self.torn: set[Key] = set()
        # Topics that were deleted: who goes by names does not know which of them it read.
        self.recreated: set[str] = set()
        self.meddled_groups: set[str] = set()
        self._told: set[tuple[str, str]] = set()

    def broken(self, law: str, message: str) -> None:
        """Note a violation, once."""
        if (law, message) in self._told or len(self.violations) >= VIOLATIONS_MAX:
            return
        self._told.add((law, message))
        at_ms = self.history.now_ms() - self.start_ms
        self.violations.append(Violation(law, message, self.step, at_ms))

    def user_logs(self) -> list[LogView]:
        """The logs that clients write, as they were written."""
        return [log for log in self.logs if not log.is_internal and not log.has_holes]


class HistoryLaw:
    """One law of the history. Its docstring is the law in a sentence, `name` the law in a few
    words.
    """

    name = ""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.begin()

    def begin(self) -> None:
        """Make what the law remembers."""

    def broken(self, message: str) -> None:
        """Say that the law does not hold."""
        self.judge.broken(self.name, message)

    def forget(self) -> None:
        """The cluster was put back to what it was: nothing follows from the past."""

    def conclude(self) -> None:
        """Everything is over and at rest."""


class Law(HistoryLaw):
    """One law of the state."""

    def __init__(self, laws: Laws) -> None:
        self.laws = laws
        super().__init__(laws)

    def look(self, partition: Partition, views: list[ReplicaView]) -> None:
        """A partition has changed; `views` are its replicas."""

    def happened(self, event: Event) -> None:
        """Something was told."""


def name_of(partition: Partition) -> str:
    """The partition as people write it."""
    return f"{partition.topic.name}-{partition.index}"


def key_of(partition: Partition) -> Key:
    """The partition, whatever its topic is called."""
    return partition.topic.topic_id, partition.index
