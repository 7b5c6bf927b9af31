"""Readers of a journal that read at their own pace, and backpressure from slow ones.

A full journal removes its oldest entries. With `overflow="drop"` a slow reader then finds a gap.
With `"block"` the journal keeps unread entries and is `full`; connections read no requests until
there is room. Three rules keep the cluster from waiting for ever:
- timers and answers to earlier requests are still written;
- a closed reader needs no entries, and a stalled one is made to `give_up`: it may find gaps from
  then on;
- the journal never holds more than twice its bytes; beyond that it removes entries as with "drop".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Overflow: TypeAlias = Literal["drop", "block"]


class ReaderPosition:
    """A reader that has read all entries up to number `position`."""

    __slots__ = ("_readers", "has_given_up", "position")

    def __init__(self, readers: ReaderPositions, position: int) -> None:
        self._readers = readers
        self.position = position
        self.has_given_up = False

    def has_read(self, seq: int) -> None:
        """The reader has read all entries up to this number."""
        if seq > self.position:
            self.position = seq
            self._readers.moved()

    def give_up(self) -> None:
        """The reader may miss entries from now on: nothing waits for it."""
        self.has_given_up = True
        self._readers.moved()

    def close(self) -> None:
        """Stop reading. A second call does nothing."""
        self._readers.leave(self)


class ReaderPositions:
    """The readers of one journal, and the callbacks for when it has room again."""

    __slots__ = ("_make_room", "_waiting", "all", "full", "overflow")

    def __init__(self, overflow: Overflow, make_room: Callable[[], None]) -> None:
        self.overflow: Overflow = overflow
        self.all: list[ReaderPosition] = []
        self.full = False
        self._make_room = make_room
        self._waiting: list[Callable[[], None]] = []

    def add(self, position: int) -> ReaderPosition:
        """Add a reader that begins behind number `position`."""
        following = ReaderPosition(self, position)
        self.all.append(following)
        return following

    def leave(self, following: ReaderPosition) -> None:
        if following in self.all:
            self.all.remove(following)
            self.moved()

    def moved(self) -> None:
        """A reader needs fewer entries than before."""
        if self.full:
            self._make_room()

    def is_unread(self, seq: int) -> bool:
        """Whether an unread entry has this number."""
        if not self.all or self.overflow == "drop":
            return False
        return any(each.position < seq and not each.has_given_up for each in self.all)

    def set_full(self, full: bool) -> None:
        """Set whether the journal has no room."""
        self.full = full
        if not full and self._waiting:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()

    def when_room(self, call: Callable[[], None]) -> bool:
        """Call `call` once when there is room; returns whether it is the only waiter."""
        self._waiting.append(call)
        return len(self._waiting) == 1

    def positions(self) -> dict[ReaderPosition, int]:
        """The readers that have not given up, with their positions."""
        return {each: each.position for each in self.all if not each.has_given_up}

    def give_up_stalled(self, before: dict[ReaderPosition, int]) -> list[ReaderPosition]:
        """Make the slowest readers that have not moved since `before` give up; returns them."""
        now = self.positions()
        slowest = min(now.values(), default=0)
        stalled = [each for each, at in now.items() if at == slowest and before.get(each) == at]
        for each in stalled:
            each.give_up()
        return stalled
