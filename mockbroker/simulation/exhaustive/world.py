"""What the explorer needs to know of a machine and of what is around it."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

# The name of a method of the world without its `on_`, and its arguments.
Event: TypeAlias = "tuple[Any, ...]"


class Violation(AssertionError):  # noqa: N818 (a finding, not a failure)
    """Something that must hold does not."""


def must(condition: object, sentence: str) -> None:
    """Raise Violation, with the sentence that should be true, unless the condition holds."""
    if not condition:
        raise Violation(sentence)


class World(ABC):
    """A machine and its surroundings. Each event of `events` is a method `on_<name>`.

    `beginnings` names the situations that an exploration starts from; `begin` makes one of them. A
    deep situation costs no depth that way.
    """

    name: ClassVar[str]
    beginnings: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def begin(cls, beginning: str) -> World:
        """The world as it is before the first event."""

    @abstractmethod
    def events(self) -> Sequence[Event]:
        """What may happen next, always in the same order."""

    @abstractmethod
    def key(self) -> object:
        """What the future depends on: nested tuples of numbers, strings and bytes.

        Names, times and epochs are to be relative, so that states that differ in nothing else are
        one.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise Violation if something does not hold in this state."""

    @abstractmethod
    def settle(self) -> None:
        """Let all do their duty and nothing fail; raise Violation unless the end is a good one.

        The explorer calls it on a sample of the states, each time on a copy.
        """

    def take(self, event: Event) -> None:
        """Let an event happen, with what follows from it at once."""
        getattr(self, f"on_{event[0]}")(*event[1:])

    def freeze(self) -> Any:
        """A copy of the world that nothing changes any more."""
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    @classmethod
    def copies(cls, frozen: Any) -> Callable[[], World]:
        """What makes one world after the other as it was when it was frozen."""

        def thaw() -> World:
            world = pickle.loads(frozen)  # noqa: S301 - our own, from a moment ago
            assert isinstance(world, cls)
            return world

        return thaw


def spelt(event: Event) -> str:
    """An event as a line of a counterexample."""
    return " ".join(str(part) for part in event)
