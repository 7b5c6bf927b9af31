"""Records in flight: the state of one record, or of a batch of records.

A batch has one state for all its records as long as they share it. When a part of the batch is
acquired or acknowledged, or lost by the log, the batch is *split*: each offset has a state of its
own from then on. Batches are those of the acquisition, not those of the log.

Source: InFlightState, InFlightBatch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter

from mockbroker.core.share.states import (
    COMPLETIONS,
    NO_MEMBER,
    RECORD_TRANSITIONS,
    RETURN_STATES,
    Completion,
    CompletionFacts,
    RecordEvent,
    RecordState,
    ReturnFacts,
)

NO_LOCK = 0  # in place of a deadline

_first_offset = attrgetter("first_offset")


class InFlightState:
    """The state of one record, or of a batch that is not split.

    `lock_deadline_ms` is that of the acquisition lock, or NO_LOCK. `delivery_count_limit` is the
    one that applied when the ongoing transition began.
    """

    __slots__ = (
        "_former_member_id",
        "delivery_count",
        "delivery_count_limit",
        "has_ongoing_transition",
        "lock_deadline_ms",
        "member_id",
        "removed",
        "state",
    )

    def __init__(
        self,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        lock_deadline_ms: int = NO_LOCK,
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_deadline_ms = lock_deadline_ms
        self.has_ongoing_transition = False
        self.delivery_count_limit = 0
        self.removed = False
        self._former_member_id = NO_MEMBER

    def copy(self) -> InFlightState:
        """The state of one record of a batch that is split, with the ongoing transition."""
        other = InFlightState(
            self.state, self.delivery_count, self.member_id, self.lock_deadline_ms
        )
        other.has_ongoing_transition = self.has_ongoing_transition
        other.delivery_count_limit = self.delivery_count_limit
        other.removed = self.removed
        other._former_member_id = self._former_member_id
        return other

    @property
    def is_acquirable(self) -> bool:
        return self.state is RecordState.AVAILABLE and not self.has_ongoing_transition

    def is_acquired_by(self, member_id: str) -> bool:
        return self.state is RecordState.ACQUIRED and self.member_id == member_id

    def lock_is_over(self, now_ms: int) -> bool:
        """Whether the record is acquired and its lock has reached its deadline."""
        return self.state is RecordState.ACQUIRED and NO_LOCK < self.lock_deadline_ms <= now_ms

    # -- events ------------------------------------------------------------------------------------

    def acquire(self, member_id: str, lock_deadline_ms: int) -> None:
        """ACQUIRE, for a record that is acquirable."""
        assert self.is_acquirable
        self.state = self._after(RecordEvent.ACQUIRE)
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_deadline_ms = lock_deadline_ms

    def renew(self, lock_deadline_ms: int) -> None:
        """RENEW, for a record that is acquired."""
        self.state = self._after(RecordEvent.RENEW)
        self.lock_deadline_ms = lock_deadline_ms

    def begin(self, event: RecordEvent, limit: int, *, below_start: bool = False) -> None:
        """Begin the transition of an event that is written first, for a record that is acquired."""
        self._former_member_id = self.member_id
        self._leave_acquired(event, limit, below_start=below_start)
        self.has_ongoing_transition = True
        self.delivery_count_limit = limit

    def expire(self, limit: int, *, below_start: bool) -> None:
        """EXPIRE, for a record that is acquired."""
        self._leave_acquired(RecordEvent.EXPIRE, limit, below_start=below_start)
        self.lock_deadline_ms = NO_LOCK

    def archive(self, event: RecordEvent) -> None:
        """REMOVE or ABORT; an ongoing transition can no longer change the state."""
        self.state = self._after(event)
        self.removed = True
        self.member_id = NO_MEMBER
        self.lock_deadline_ms = NO_LOCK

    def complete(self, *, written: bool, now_ms: int) -> None:
        """End the ongoing transition, after its write or with an error."""
        expired = self.lock_deadline_ms <= now_ms
        at_limit = self.delivery_count >= self.delivery_count_limit
        facts = CompletionFacts(written, self.removed, expired, at_limit)
        completion = COMPLETIONS[facts]
        self.has_ongoing_transition = False
        if completion is Completion.ROLL_BACK:
            self.state = RecordState.ACQUIRED
            self.member_id = self._former_member_id
            return
        if completion is Completion.RETURN:
            self.state = RecordState.AVAILABLE
        elif completion is Completion.ARCHIVE:
            self.state = RecordState.ARCHIVED
        self.lock_deadline_ms = NO_LOCK

    def _leave_acquired(self, event: RecordEvent, limit: int, *, below_start: bool) -> None:
        state = self._after(event)
        if state is RecordState.AVAILABLE:
            state = RETURN_STATES[ReturnFacts(below_start, self.delivery_count >= limit)]
        self.state = state
        self.member_id = NO_MEMBER

    def _after(self, event: RecordEvent) -> RecordState:
        state = RECORD_TRANSITIONS[self.state][event]
        assert state is not None, f"{event.name} in {self.state.name}"
        return state

    def __repr__(self) -> str:
        ongoing = ", ongoing" if self.has_ongoing_transition else ""
        return f"({self.state.name}, {self.delivery_count}, {self.member_id!r}{ongoing})"


class InFlightBatch:
    """The records of a range of offsets, both ends included.

    `whole` is their common state, or None once `offsets` has one state for each offset.
    """

    __slots__ = ("first_offset", "last_offset", "offsets", "whole")

    def __init__(self, first_offset: int, last_offset: int, whole: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: InFlightState | None = whole
        self.offsets: list[InFlightState] | None = None

    @property
    def count(self) -> int:
        return self.last_offset - self.first_offset + 1

    def split(self) -> list[InFlightState]:
        """The state of each offset; the batch is split if it is not yet."""
        if self.offsets is None:
            assert self.whole is not None
            self.offsets = [self.whole.copy() for _ in range(self.count)]
            self.whole = None
        return self.offsets

    def states(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, InFlightState]]:
        """The offsets of a split batch that are in a range, with their states."""
        assert self.offsets is not None
        low = max(first_offset, self.first_offset)
        high = min(last_offset, self.last_offset)
        base = self.first_offset
        for offset in range(low, high + 1):
            yield offset, self.offsets[offset - base]

    def parts(self) -> list[tuple[int, int, InFlightState]]:
        """The states of the batch, each with its first and last offset."""
        if self.whole is not None:
            return [(self.first_offset, self.last_offset, self.whole)]
        states = self.states(self.first_offset, self.last_offset)
        return [(offset, offset, state) for offset, state in states]

    def state_at(self, offset: int) -> InFlightState:
        """The state of one offset of the batch."""
        if self.whole is not None:
            return self.whole
        assert self.offsets is not None
        return self.offsets[offset - self.first_offset]

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether the whole batch is in a range of offsets."""
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def contains_start(self, start_offset: int) -> bool:
        """Whether `start_offset` is in the batch, and not its first offset."""
        return self.first_offset < start_offset <= self.last_offset


class InFlightBatches:
    """The batches of a share partition, in the order of their offsets. They do not overlap."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[-1]

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch. It replaces one with the same first offset: if a client asks for batches of
        less than one record, Kafka puts an empty batch before each other one.
        """
        if not self._batches or batch.first_offset > self._batches[-1].first_offset:
            self._batches.append(batch)
            return
        at = bisect_left(self._batches, batch.first_offset, key=_first_offset)
        same = self._batches[at].first_offset == batch.first_offset
        self._batches[at : at + same] = [batch]

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at `offset` or before it."""
        index = bisect_right(self._batches, offset, key=_first_offset)
        return self._batches[index - 1] if index else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """The batches that begin in a range, both ends included."""
        low = bisect_left(self._batches, first_offset, key=_first_offset)
        high = bisect_right(self._batches, last_offset, low, key=_first_offset)
        return self._batches[low:high]

    def first_after(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins after `offset`."""
        index = bisect_right(self._batches, offset, key=_first_offset)
        return self._batches[index] if index < len(self._batches) else None

    def drop_before(self, offset: int) -> None:
        """Drop the batches that begin before `offset`."""
        del self._batches[: bisect_left(self._batches, offset, key=_first_offset)]

    def clear(self) -> None:
        self._batches.clear()
