"""A share group at work in a made-up history: it does everything right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.pipeline.histories import Log, Row, Story

GROUP = "g-share"
MEMBERS = ("s1", "s2", "s3")
LIMIT = 3


@dataclass
class InHand:
    """One offset in flight: its state, how often it was delivered, and to whom it is now."""

    state: str = "Available"
    deliveries: int = 0
    member: str | None = None


@dataclass
class SharePart:
    """One partition as the group reads it."""

    log: Log
    share_state: int
    epoch: int
    life: int | None = None
    start: int = 0
    end: int = 0  # the first offset that was never in flight
    offsets: dict[int, InHand] = field(default_factory=dict)

    def held_by(self, member: str) -> list[int]:
        return sorted(
            offset
            for offset, each in self.offsets.items()
            if each.state == "Acquired" and each.member == member
        )


class ShareGroup:
    """The group of a story, whose dice it uses."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._dice = story.dice
        self._parts: dict[int, SharePart] = {}
        self._states = count(1)
        self._lives = count(1)

    # -- writing down ------------------------------------------------------------------------------

    def event(
        self, part: SharePart, change: str, offsets: Iterable[int], state: str,
        member: str | None = None, deliveries: int = 1, **more: object,
    ) -> None:  # fmt: skip
        """Rows of one event: one for each range of offsets."""
        numbered = enumerate(sorted(offsets))
        for _, run in groupby(numbered, key=lambda each: each[1] - each[0]):
            together = [offset for _, offset in run]
            row: Row = {
                "group": GROUP, "member": member, "broker": 1, **part.log.place,
                "state_epoch": part.epoch, "share_state": part.share_state, "life": part.life,
                "change": change, "first_offset": together[0], "last_offset": together[-1],
                "state": state, "delivery_count": deliveries, "delivery_limit": LIMIT,
            }  # fmt: skip
            self._story.row("share_records", seq=self._story.next(), **(row | more))

    def start_row(
        self, part: SharePart, change: str, offset: int | None, former: int | None = None,
        **more: object,
    ) -> None:  # fmt: skip
        self._story.row(
            "share_starts", seq=self._story.next(), group=GROUP, broker=1, **part.log.place,
            state_epoch=part.epoch, share_state=part.share_state, life=part.life, change=change,
            former_offset=former, offset=offset, **more,
        )  # fmt: skip

    # -- life --------------------------------------------------------------------------------------

    def part(self, log: Log) -> SharePart:
        """The group's part of a log; it begins at the log's start."""
        part = self._parts.get(id(log))
        if part is None:
            part = self._parts[id(log)] = SharePart(log, next(self._states), 1)
            self.start_row(part, "initialized", None)
            part.start = part.end = log.log_start
            self.load(part, "reset")
        return part

    def load(self, part: SharePart, change: str = "loaded") -> None:
        """A leader reads the state; what was in the hands of members is Available."""
        part.life = next(self._lives)
        self.start_row(part, change, part.start)
        for each in part.offsets.values():
            if each.state == "Acquired":
                each.state, each.member = "Available", None
                each.deliveries -= 1

    def reset(self, part: SharePart, start: int | None = None) -> None:
        """An administrator sets the start offset, to `start` or to any."""
        part.share_state, part.epoch, part.life = next(self._states), part.epoch + 1, None
        chosen = self._dice.randint(part.log.log_start, part.log.end)
        part.start = part.end = chosen if start is None else start
        part.offsets.clear()
        self.start_row(part, "initialized", part.start)
        self.load(part)

    # -- work --------------------------------------------------------------------------------------

    def play(self) -> None:
        """One step."""
        part = self.part(self._dice.choice(self._story.logs))
        self._see_log_start(part)
        throw = self._dice.random()
        member = self._dice.choice(MEMBERS)
        if throw < 0.45:
            self.acquire(part, member, self._dice.randint(1, 5))
        elif throw < 0.85:
            self._acknowledge(part, member)
        elif throw < 0.92:
            self._give_back(part, member)
        elif throw < 0.97:
            self.load(part)
        else:
            self.reset(part)

    def _see_log_start(self, part: SharePart) -> None:
        log_start, former = part.log.log_start, part.start
        if log_start <= former:
            return
        lost = [
            offset
            for offset, each in part.offsets.items()
            if offset < log_start and each.state == "Available"
        ]
        for deliveries, offsets in self._by_deliveries(part, lost):
            self.event(part, "removed", offsets, "Archived", None, deliveries, reason="log_start")
        for offset in lost:
            part.offsets[offset].state = "Archived"
        part.start, part.end = log_start, max(part.end, log_start)
        self.start_row(part, "moved", log_start, former, reason="log_start")

    def _by_deliveries(
        self, part: SharePart, offsets: Iterable[int]
    ) -> list[tuple[int, list[int]]]:
        found: dict[int, list[int]] = {}
        for offset in offsets:
            found.setdefault(part.offsets[offset].deliveries, []).append(offset)
        return sorted(found.items())

    def acquire(self, part: SharePart, member: str, most: int) -> list[int]:
        """A member takes what is Available, then what is new."""
        taken = sorted(
            offset
            for offset, each in part.offsets.items()
            if each.state == "Available" and offset >= part.start
        )[:most]
        while len(taken) < most and part.end < part.log.end:
            part.offsets[part.end] = InHand()
            taken.append(part.end)
            part.end += 1
        for offset in taken:
            each = part.offsets[offset]
            each.state, each.member, each.deliveries = "Acquired", member, each.deliveries + 1
        for deliveries, offsets in self._by_deliveries(part, taken):
            self.event(part, "acquired", offsets, "Acquired", member, deliveries)
        return taken

    def _acknowledge(self, part: SharePart, member: str) -> None:
        held = part.held_by(member)
        if not held:
            return
        chosen = self._dice.sample(held, self._dice.randint(1, len(held)))
        change = self._dice.choice(("accepted", "accepted", "accepted", "rejected", "released"))
        there = {s.offset for s in part.log.entries if s.record is not None and not s.gone}
        for deliveries, offsets in self._by_deliveries(part, chosen):
            real = [offset for offset in offsets if offset in there]
            done = change
            if change == "released" and deliveries >= LIMIT:
                done = "accepted"  # here nobody lets a record go for good
            gaps = [offset for offset in offsets if offset not in there]
            life = part.life
            self._finish(part, "gap", gaps, member, deliveries)
            if part.life == life:
                self._finish(part, done, real, member, deliveries)
            if part.life != life:
                break  # another leader knows nothing of the rest
        self.move_start(part)

    def _finish(
        self, part: SharePart, change: str, offsets: list[int], member: str, deliveries: int
    ) -> None:
        if not offsets:
            return
        state = {"accepted": "Acknowledged", "released": "Available"}.get(change, "Archived")
        reason = change if state == "Archived" else None
        lost: list[int] = []
        if state == "Available":
            lost = [offset for offset in offsets if offset < part.log.log_start]
            offsets = [offset for offset in offsets if offset >= part.log.log_start]
        if self._dice.random() < 0.3 and offsets:
            self.event(part, "writing", offsets, state, member, deliveries, reason=reason)
            throw = self._dice.random()
            if throw < 0.2:
                self.event(part, "rolled_back", offsets, "Acquired", member, deliveries)
                return
            if throw < 0.4:
                # The leader ends before it has the answer.
                if self._dice.random() < 0.5:
                    for offset in offsets:
                        part.offsets[offset].state = state
                self.load(part)
                return
        self.event(part, change, offsets, state, member, deliveries, reason=reason)
        self.event(part, change, lost, "Archived", member, deliveries, reason="log_start")
        for offset in offsets:
            part.offsets[offset] = InHand(state, deliveries)
        for offset in lost:
            part.offsets[offset] = InHand("Archived", deliveries)

    def _give_back(self, part: SharePart, member: str) -> None:
        """A lock expires, or the member's session ends."""
        change = self._dice.choice(("lock_expired", "session_ended", "renewed"))
        for deliveries, offsets in self._by_deliveries(part, part.held_by(member)):
            if change == "renewed":
                self.event(part, change, offsets, "Acquired", member, deliveries)
            elif deliveries < LIMIT:
                kept = [offset for offset in offsets if offset >= part.log.log_start]
                lost = [offset for offset in offsets if offset < part.log.log_start]
                self.event(part, change, kept, "Available", member, deliveries)
                self.event(part, change, lost, "Archived", member, deliveries, reason="log_start")
                for offset in kept:
                    part.offsets[offset] = InHand("Available", deliveries)
                for offset in lost:
                    part.offsets[offset] = InHand("Archived", deliveries)

    def move_start(self, part: SharePart) -> None:
        """Move the start offset past what is final."""
        former = part.start
        while part.start < part.end:
            each = part.offsets.get(part.start)
            if each is not None and each.state not in ("Acknowledged", "Archived"):
                break
            part.start += 1
        if part.start > former:
            self.start_row(part, "moved", part.start, former, reason="final")
