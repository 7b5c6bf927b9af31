"""The explorer: a breadth-first search until an invariant is violated or the depth is reached.

A state is expanded from its frozen copy, once for each event. Its key is kept as a digest of 16
bytes; two of a million states collide with a probability of about 10^-27. For each state the
explorer keeps the state and the event that first led to it, which give a shortest path.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from tests.simulation.exhaustive.world import Event, ExploredWorld, InvariantViolation, text_of

DIGEST_BYTES = 16
NOWHERE = -1


class Level(msgspec.Struct, frozen=True, array_like=True):
    """The new states and the transitions of one level of the search."""

    states: int
    transitions: int


class Counterexample(msgspec.Struct, frozen=True):
    """A shortest sequence of events that ends in a violation."""

    beginning: str
    events: tuple[Event, ...]
    violation: str

    def __str__(self) -> str:
        steps = [f"  {number}. {text_of(event)}" for number, event in enumerate(self.events, 1)]
        return "\n".join([f"from {self.beginning!r}:", *steps, f"violated: {self.violation}"])


class Exploration(msgspec.Struct, frozen=True):
    """The result: the levels from the start states on, and the counterexample if there is one."""

    levels: tuple[Level, ...]
    settled: int  # states for which `settle` was checked
    counterexample: Counterexample | None

    @property
    def depth(self) -> int:
        """The number of events after the start state."""
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
    """One running exploration."""

    def __init__(self, world: type[ExploredWorld], settle_every: int) -> None:
        self.world = world
        self.settle_every = settle_every
        self.settled = 0
        self.levels: list[Level] = []
        self.seen: set[bytes] = set()
        # By the number of a state: the number of its predecessor, and the event between.
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
        """Apply each event in each new state of the level before."""
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

    def _judge(
        self, world: ExploredWorld, before: int, event: Event, *, last: bool = False
    ) -> None:
        """Add a new state, and check its invariants."""
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
        """The counterexample of an error, followed backwards."""
        events = [event]
        while number != NOWHERE:
            events.append(self.by[number])
            number = self.before[number]
        beginning = events.pop()[0]
        is_violation = isinstance(error, InvariantViolation)
        violation = str(error) if is_violation else f"{type(error).__name__}: {error}"
        return _Found(Counterexample(beginning, tuple(reversed(events)), violation))


def explore(
    world: type[ExploredWorld],
    depth: int,
    *,
    settle_every: int = 0,
    beginnings: Sequence[str] | None = None,
) -> Exploration:
    """Explore all sequences of at most `depth` events, from each start state.

    `settle` is checked for one state in `settle_every`; 0 disables that. The sample is the same in
    each run. The search stops at the first violation.
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
