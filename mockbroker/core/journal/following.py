"""Those who read a journal at their own pace, and what becomes of entries that they have not read.

A journal that is full forgets its oldest entries. With `overflow="drop"` it does so whoever still
wants them: a slow reader finds a gap, which is told. With `"block"` it keeps what is not read yet
and says that it is `full`; whoever takes in requests waits then until there is room. Three things
see to it that nobody waits for ever:

- what happens by itself (timers, answers to requests that were taken in before) is still written;
- a reader that is gone wants nothing any more, and one that has stopped reading is told to
  `give_up` by those who have waited long enough: from then on it may find gaps;
- the journal never holds more than twice its bytes. Beyond that it forgets as with "drop".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Overflow: TypeAlias = Literal["drop", "block"]


class Following:
    """One reader's place: it has read all entries up to number `position`."""

    __slots__ = ("_readers", "has_given_up", "position")

    def __init__(self, readers: Readers, position: int) -> None:
        self._readers = readers
        self.position = position
        self.has_given_up = False

    def has_read(self, seq: int) -> None:
        """It has read all up to this number, and waits for what comes behind it."""
        if seq > self.position:
            self.position = seq
            self._readers.moved()

    def give_up(self) -> None:
        """It may miss something from now on: nobody waits for it any more."""
        self.has_given_up = True
        self._readers.moved()

    def close(self) -> None:
        """It reads no longer. Closing twice is closing once."""
        self._readers.leave(self)


class Readers:
    """The readers of one journal, and those who wait until it has room again."""

    __slots__ = ("_make_room", "_waiting", "all", "full", "overflow")

    def __init__(self, overflow: Overflow, make_room: Callable[[], None]) -> None:
        self.overflow: Overflow = overflow
        self.all: list[Following] = []
        self.full = False
        self._make_room = make_room
        self._waiting: list[Callable[[], None]] = []

    def add(self, position: int) -> Following:
        """A reader that begins behind number `position`."""
        following = Following(self, position)
        self.all.append(following)
        return following

    def leave(self, following: Following) -> None:
        if following in self.all:
            self.all.remove(following)
            self.moved()

    def moved(self) -> None:
        """One of them wants less than before."""
        if self.full:
            self._make_room()

    def want(self, seq: int) -> bool:
        """Whether somebody has to get the entry with this number yet."""
        if not self.all or self.overflow == "drop":
            return False
        return any(each.position < seq and not each.has_given_up for each in self.all)

    def set_full(self, full: bool) -> None:
        """The journal has no room, or has room again."""
        self.full = full
        if not full and self._waiting:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()

    def when_room(self, call: Callable[[], None]) -> bool:
        """Have `call` called once, when there is room; whether it is the first that waits."""
        self._waiting.append(call)
        return len(self._waiting) == 1

    def places(self) -> dict[Following, int]:
        """Those that are waited for, with where they are."""
        return {each: each.position for each in self.all if not each.has_given_up}

    def lose_patience(self, seen: dict[Following, int]) -> list[Following]:
        """Have the slowest give up, if they have not moved since they were `seen`; returns them."""
        now = self.places()
        slowest = min(now.values(), default=0)
        still = [each for each, at in now.items() if at == slowest and seen.get(each) == at]
        for each in still:
            each.give_up()
        return still
