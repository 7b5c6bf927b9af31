"""A follower: it finds where its log parts from the leader's, cuts it there, and then copies.

The machine has one question at a time under way to its leader, and four states:

    IDLE        there is no leader, no link to it, or a rule holds the follower
    TRUNCATING  it has asked where the epoch of its last record ended (KIP-101)
    FETCHING    it has asked for what comes after its last record
    WAITING     the leader refused, or did not answer; after a pause it asks again

Since KIP-595 a fetch carries the epoch of the last record, and the leader answers with the point of
divergence instead of records when the histories differ: a modern follower is never TRUNCATING. The
older ways are kept for showing why there are epochs at all (`Truncation`).

An answer is what is new: records, the leader's high watermark and its log start. A follower learns
the high watermark that its own fetch brought about only with the answer after that: one round trip
late.

The machine is pure: events in, effects out. It owns its replica's log. Answers carry the number of
the question; late ones are dropped, as the table says.

Source: AbstractFetcherThread, ReplicaFetcherThread.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mockbroker.core.log.epoch_cache import NO_EPOCH, NO_OFFSET, EpochCache
from mockbroker.core.log.replica_log import LogSlice
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.replication.replica import Replica


class FetcherState(Enum):
    __hash__ = object.__hash__  # a member is one object, and Enum's own is slow

    IDLE = "idle"
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    WAITING = "waiting"


_ASKING = (FetcherState.TRUNCATING, FetcherState.FETCHING)


class Truncation(Enum):
    """How a follower finds where its log diverges from the leader's."""

    FETCH = "fetch"  # by the epoch in each Fetch (KIP-595): Kafka since 2.7
    EPOCH = "epoch"  # by an OffsetForLeaderEpoch before the first Fetch (KIP-101): 0.11 to 2.6
    HIGH_WATERMARK = "hw"  # to its own high watermark: up to 0.10


# -- events ----------------------------------------------------------------------------------------


class Follow(NamedTuple):
    """The follower can fetch from this leader, under this epoch."""

    leader_id: int
    leader_epoch: int


class Halt(NamedTuple):
    """The follower has no leader that it can fetch from."""


class Fetched(NamedTuple):
    """Records, or none, with the leader's high watermark and log start."""

    number: int
    taken: LogSlice | None
    high_watermark: int
    log_start_offset: int


class Diverged(NamedTuple):
    """The logs diverge: the leader's largest epoch up to the follower's last, and its end."""

    number: int
    epoch: int
    end_offset: int


class OutOfRange(NamedTuple):
    """The offset is outside the leader's log, which has this range."""

    number: int
    log_start_offset: int
    log_end_offset: int


class EpochEnd(NamedTuple):
    """The answer to OffsetForLeaderEpoch; -1 and -1 when the leader does not know the epoch."""

    number: int
    epoch: int
    end_offset: int


class Refused(NamedTuple):
    """An error instead of an answer."""

    number: int
    error: int


class RetryDue(NamedTuple):
    """The back-off is over, or the time to wait for an answer."""

    number: int


Answer = Fetched | Diverged | OutOfRange | EpochEnd | Refused
Event = Follow | Halt | Answer | RetryDue


# -- effects ---------------------------------------------------------------------------------------


class Fetch(NamedTuple):
    """Ask the leader for what comes at `offset`."""

    number: int
    leader_id: int
    leader_epoch: int
    offset: int
    last_epoch: int
    log_start_offset: int


class OffsetForLeaderEpoch(NamedTuple):
    """Ask the leader where `epoch` ended."""

    number: int
    leader_id: int
    leader_epoch: int
    epoch: int


class Pause(NamedTuple):
    """Ask for a `RetryDue` with this number after the fetcher's back-off."""

    number: int


class Truncated(NamedTuple):
    """The log was cut back to `offset`."""

    former_end_offset: int
    offset: int


class Advanced(NamedTuple):
    """The log grew, or its watermarks moved."""

    former_high_watermark: int


Question = Fetch | OffsetForLeaderEpoch
Effect = Question | Pause | Truncated | Advanced


# -- the table -------------------------------------------------------------------------------------


class Step(Enum):
    """What an event makes a state do."""

    BEGIN = "follow this leader"
    STOP = "send no more requests"
    TAKE = "append, and fetch on"
    CUT = "truncate to where the logs diverge, and fetch on"
    JUMP = "move into the range of the leader's log, and fetch on"
    TRUNCATE = "truncate to the end of the epoch; fetch, or ask for the epoch before"
    BACK_OFF = "wait before the next request"
    RETRY = "ask again"
    DROP = "drop the answer to an earlier request"


_S = Step
TRANSITIONS: dict[type[Event], tuple[Step, Step, Step, Step]] = {
    #            IDLE       TRUNCATING   FETCHING     WAITING
    Follow: (_S.BEGIN, _S.BEGIN, _S.BEGIN, _S.BEGIN),
    Halt: (_S.STOP, _S.STOP, _S.STOP, _S.STOP),
    Fetched: (_S.DROP, _S.DROP, _S.TAKE, _S.DROP),
    Diverged: (_S.DROP, _S.DROP, _S.CUT, _S.DROP),
    OutOfRange: (_S.DROP, _S.DROP, _S.JUMP, _S.DROP),
    EpochEnd: (_S.DROP, _S.TRUNCATE, _S.DROP, _S.DROP),
    Refused: (_S.DROP, _S.BACK_OFF, _S.BACK_OFF, _S.DROP),
    # In the middle of a question: it got lost.
    RetryDue: (_S.DROP, _S.RETRY, _S.RETRY, _S.RETRY),
}
_NUMBERLESS = (Follow, Halt)
_COLUMNS = {state: column for column, state in enumerate(FetcherState)}


class ReplicaFetcher:
    """One follower of one partition."""

    __slots__ = ("_number", "_settled", "following", "limits", "replica", "state", "truncation")

    def __init__(self, replica: Replica, limits: RollLimits, truncation: Truncation) -> None:
        self.replica = replica
        self.limits = limits
        self.truncation = truncation
        self.state = FetcherState.IDLE
        self.following: Follow | None = None
        self._number = 0  # of the question under way
        self._settled = False  # the log is known to be a beginning of the leader's

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Take in one event; what the follower asks for, and what became of its copy."""
        step = TRANSITIONS[type(event)][_COLUMNS[self.state]]
        if not isinstance(event, _NUMBERLESS) and event.number != self._number:
            return []
        match event:
            case Fetched() if step is Step.TAKE:
                return [*self._take(event, now_ms), *self._ask()]
            case Follow() if step is Step.BEGIN:
                return self._begin(event)
            case Halt() if step is Step.STOP:
                self.state, self.following = FetcherState.IDLE, None
                self._number += 1
            case Diverged() if step is Step.CUT:
                return [*self._cut(event.epoch, event.end_offset), *self._ask()]
            case OutOfRange() if step is Step.JUMP:
                return [*self._jump(event), *self._ask()]
            case EpochEnd() if step is Step.TRUNCATE:
                return [*self._cut(event.epoch, event.end_offset), *self._ask()]
            case Refused() if step is Step.BACK_OFF:
                self.state = FetcherState.WAITING
                return [Pause(self._number)]
            case RetryDue() if step is Step.RETRY:
                return self._ask()
            case _:
                assert step is Step.DROP
        return []

    # -- asking ------------------------------------------------------------------------------------

    def is_asking(self, number: int) -> bool:
        """Whether the question with this number is the one under way."""
        return number == self._number and self.state in _ASKING

    def _begin(self, leader: Follow) -> list[Effect]:
        """Follow a leader; the one followed already is asked no second time."""
        if leader == self.following:
            return []
        self.following = leader
        self._settled = self.truncation is Truncation.FETCH
        effects: list[Effect] = []
        if self.truncation is Truncation.HIGH_WATERMARK or self._latest_epoch() == NO_EPOCH:
            effects += self._truncate(self.replica.high_watermark)
            self._settled = True
        return effects + self._ask()

    def _ask(self) -> list[Effect]:
        assert self.following is not None
        self._number += 1
        leader_id, leader_epoch = self.following
        log = self.replica.log
        if not self._settled:
            self.state = FetcherState.TRUNCATING
            return [
                OffsetForLeaderEpoch(self._number, leader_id, leader_epoch, self._latest_epoch())
            ]
        self.state = FetcherState.FETCHING
        last_epoch = self._latest_epoch() if self.truncation is Truncation.FETCH else NO_EPOCH
        return [
            Fetch(
                self._number, leader_id, leader_epoch, log.end_offset, last_epoch, log.start_offset
            )
        ]

    def _latest_epoch(self) -> int:
        return self.replica.log.epochs.latest

    # -- answers -----------------------------------------------------------------------------------

    def _take(self, answer: Fetched, now_ms: int) -> list[Effect]:
        replica = self.replica
        log = replica.log
        former = replica.high_watermark
        news = False
        if answer.taken is not None:
            log.append_slice(answer.taken, now_ms, self.limits)
            news = True
        if answer.log_start_offset <= log.end_offset:
            news |= log.move_start(answer.log_start_offset)
        news |= replica.follow_high_watermark(answer.high_watermark)
        return [Advanced(former)] if news else []

    def _cut(self, epoch: int, end_offset: int) -> list[Effect]:
        replica = self.replica
        point = truncation_point(
            replica.log.epochs, replica.log.end_offset, replica.high_watermark, epoch, end_offset
        )
        self._settled = point.settled or self.truncation is Truncation.FETCH
        return self._truncate(point.offset)

    def _truncate(self, offset: int) -> list[Effect]:
        former = self.replica.log.end_offset
        return [Truncated(former, offset)] if self.replica.truncate(offset) else []

    def _jump(self, answer: OutOfRange) -> list[Effect]:
        """The leader's log begins behind the end of this one, or ends before it
        (fetchOffsetAndTruncate).
        """
        log = self.replica.log
        if answer.log_end_offset < log.end_offset:
            return self._truncate(answer.log_end_offset)
        if answer.log_start_offset > log.end_offset:
            former = log.end_offset
            self.replica.start_anew(answer.log_start_offset)
            return [Truncated(former, answer.log_start_offset)]
        return []


# -- where to cut ----------------------------------------------------------------------------------


class TruncationPoint(NamedTuple):
    """Where a log is cut; `settled` once nothing above it can differ from the leader's."""

    offset: int
    settled: bool


def truncation_point(
    epochs: EpochCache, log_end_offset: int, high_watermark: int, epoch: int, end_offset: int
) -> TruncationPoint:
    """Where a follower cuts its log, given what the leader said of the follower's last epoch.

    The leader names the largest epoch it has that is not above the one asked for, and where that
    ended. An undefined answer leaves only what is known to be committed. When the follower has not
    got that epoch, it drops what it has of later ones and has to ask again (KIP-279).
    """
    if end_offset == NO_OFFSET:
        return TruncationPoint(high_watermark, True)
    if epoch == NO_EPOCH:
        return TruncationPoint(min(end_offset, log_end_offset), True)
    own_epoch, own_end = epochs.end_offset_for(epoch, log_end_offset)
    if own_end == NO_OFFSET:
        return TruncationPoint(min(end_offset, log_end_offset), True)
    if own_epoch != epoch:
        return TruncationPoint(min(own_end, log_end_offset), False)
    return TruncationPoint(min(own_end, end_offset, log_end_offset), True)
