"""What a law is, and what it may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.events import Event
from mockbroker.core.partition import Partition
from mockbroker.simulation.observe import ReplicaView

if TYPE_CHECKING:
    from mockbroker.simulation.laws import Laws

Key = tuple[bytes, int]  # topic id and partition

TIME_GOES_ON = "time goes on"  # broken by what goes round and round without any time passing
NO_FAILURES = "handlers and the core do not fail"


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


class Law:
    """One law. Its docstring is the law in a sentence, `name` the law in a few words."""

    name = ""

    def __init__(self, laws: Laws) -> None:
        self.laws = laws
        self.begin()

    def begin(self) -> None:
        """Make what the law remembers."""

    def broken(self, message: str) -> None:
        """Say that the law does not hold."""
        self.laws.broken(self.name, message)

    def look(self, partition: Partition, views: list[ReplicaView]) -> None:
        """A partition has changed; `views` are its replicas."""

    def happened(self, event: Event) -> None:
        """Something was told."""

    def forget(self) -> None:
        """The cluster was put back to what it was: nothing follows from the past."""

    def conclude(self) -> None:
        """Everything is over and at rest."""


def name_of(partition: Partition) -> str:
    """The partition as people write it."""
    return f"{partition.topic.name}-{partition.index}"


def key_of(partition: Partition) -> Key:
    """The partition, whatever its topic is called."""
    return partition.topic.topic_id, partition.index
