"""Breadth first through all that may happen, until something does not hold or the depth is reached.

A state is expanded from its frozen copy, once for each event. Its key is kept as a digest of 16
bytes: of a million states two share one with a probability of about 10^-27. With each state goes
the one it was first reached from and by which event, which gives the shortest way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from mockbroker.simulation.exhaustive.world import Event, World, spelt

DIGEST_BYTES = 16
NOWHERE = -1


class Level(msgspec.Struct, frozen=True, array_like=True):
    """What one more event led to: states never seen before, and the transitions that were taken."""

    states: int
    transitions: int


class Counterexample(msgspec.Struct, frozen=True):
    """A shortest sequence of events that ends in a violation."""

    beginning: str
    events: tuple[Event, ...]
    violation: str

    def __str__(self) -> str:
        steps = [f"  {number}. {spelt(event)}" for number, event in enumerate(self.events, 1)]
        return "\n".join([f"from {self.beginning!r}:", *steps, f"violated: {self.violation}"])


class Exploration(msgspec.Struct, frozen=True):
    """How far it went, level by level from the beginnings on, and what was found if anything."""

    levels: tuple[Level, ...]
    settled: int  # states from which the world was left in peace
    counterexample: Counterexample | None

    @property
    def depth(self) -> int:
        """Events after the beginning."""
        return len(self.levels) - 1

    @property
    def states(self) -> int:
        return sum(level.states for level in self.levels)

    @property
    def transitions(self) -> int:
        return sum(level.transitions for level in self.levels)


class _Found(Exception):  # noqa: N818 (an outcome, not a failure)
    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__()
        self.counterexample = counterexample


class _Explorer:
    """One exploration under way."""

    def __init__(self, world: type[World], settle_every: int) -> None:
        self.world = world
        self.settle_every = settle_every
        self.settled = 0
        self.levels: list[Level] = []
        self.seen: set[bytes] = set()
        # By the number of a state: the number of the one before, and the event between.
        self.before: list[int] = []
        self.by: list[Event] = []
        self.frontier: list[tuple[int, Any]] = []

    def begin(self, beginnings: Sequence[str]) -> None:
        for beginning in beginnings:
            try:
                world = self.world.begin(beginning)
            except Exception as error:
                raise self._found(NOWHERE, (beginning,), error) from error
            self._judge(world, NOWHERE, (beginning,))
        self.levels.append(Level(len(self.frontier), 0))

    def deepen(self, *, last: bool) -> None:
        """Take every event in every state that the level before has found."""
        frontier, self.frontier = self.frontier, []
        states, transitions = len(self.seen), 0
        for number, frozen in frontier:
            copy = self.world.copies(frozen)
            events = copy().events()
            transitions += len(events)
            for event in events:
                world = copy()
                try:
                    world.take(event)
                except Exception as error:
                    raise self._found(number, event, error) from error
                self._judge(world, number, event, last=last)
        self.levels.append(Level(len(self.seen) - states, transitions))

    def _judge(self, world: World, before: int, event: Event, *, last: bool = False) -> None:
        """Note a state that is new, and check what must hold in it."""
        digest = blake2b(repr(world.key()).encode(), digest_size=DIGEST_BYTES).digest()
        if digest in self.seen:
            return
        self.seen.add(digest)
        number = len(self.before)
        self.before.append(before)
        self.by.append(event)
        try:
            world.check()
            frozen = None if last and not self._is_sample(digest) else world.freeze()
            if self._is_sample(digest):
                self.settled += 1
                self.world.copies(frozen)().settle()
        except Exception as error:
            raise self._found(before, event, error) from error
        if not last:
            self.frontier.append((number, frozen))

    def _is_sample(self, digest: bytes) -> bool:
        every = self.settle_every
        return every > 0 and int.from_bytes(digest[:4], "big") % every == 0

    def _found(self, number: int, event: Event, error: Exception) -> _Found:
        """The way to a violation, from its end."""
        events = [event]
        while number != NOWHERE:
            events.append(self.by[number])
            number = self.before[number]
        beginning = events.pop()[0]
        kind = type(error).__name__
        what = str(error) if kind == "Violation" else f"{kind}: {error}"
        return _Found(Counterexample(beginning, tuple(reversed(events)), what))


def explore(
    world: type[World],
    depth: int,
    *,
    settle_every: int = 0,
    beginnings: Sequence[str] | None = None,
) -> Exploration:
    """Go through all sequences of at most `depth` events, from each of the world's beginnings.

    One state in `settle_every` is left in peace as well, to see that it comes to a good end; 0
    leaves that out. The sample is the same in each run. Stops at the first violation.
    """
    explorer = _Explorer(world, settle_every)
    counterexample = None
    try:
        explorer.begin(world.beginnings if beginnings is None else beginnings)
        for level in range(depth):
            explorer.deepen(last=level == depth - 1)
    except _Found as found:
        counterexample = found.counterexample
    return Exploration(tuple(explorer.levels), explorer.settled, counterexample)
