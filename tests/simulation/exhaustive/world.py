"""The interface between the explorer and a state machine with its surroundings."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

# The name of a method of the world without its `on_`, and its arguments.
Event: TypeAlias = "tuple[Any, ...]"


class InvariantViolation(AssertionError):  # noqa: N818 (a finding, not a failure)
    """An invariant does not hold."""


def must(condition: object, sentence: str) -> None:
    """Raise InvariantViolation with the invariant's sentence unless the condition holds."""
    if not condition:
        raise InvariantViolation(sentence)


class ExploredWorld(ABC):
    """A state machine and its surroundings. Each event of `events` is a method `on_<name>`.

    `beginnings` are the names of the start states; `begin` makes one. Start states that are reached
    late otherwise save depth.
    """

    name: ClassVar[str]
    beginnings: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def begin(cls, beginning: str) -> ExploredWorld:
        """The world in a start state."""

    @abstractmethod
    def events(self) -> Sequence[Event]:
        """The possible next events, always in the same order."""

    @abstractmethod
    def key(self) -> object:
        """All that the future depends on: nested tuples of numbers, strings and bytes.

        Names, times and epochs must be relative, so that equivalent states have equal keys.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise InvariantViolation if an invariant does not hold in this state."""

    @abstractmethod
    def settle(self) -> None:
        """Run without further faults; raise InvariantViolation unless the final state is good.

        The explorer calls it on copies of a sample of the states.
        """

    def take(self, event: Event) -> None:
        """Apply an event, with its immediate consequences."""
        getattr(self, f"on_{event[0]}")(*event[1:])

    def freeze(self) -> Any:
        """An immutable copy of the world."""
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    @classmethod
    def copies(cls, frozen: Any) -> Callable[[], ExploredWorld]:
        """A function that makes copies of a frozen world."""

        def thaw() -> ExploredWorld:
            world = pickle.loads(frozen)
            assert isinstance(world, cls)
            return world

        return thaw


def text_of(event: Event) -> str:
    """An event as a line of a counterexample."""
    return " ".join(str(part) for part in event)
