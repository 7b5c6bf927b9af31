"""A follower's fetcher: it truncates the log where it diverges from the leader's, then copies.

The machine has one request at a time in flight to its leader, and four states:

    IDLE        there is no leader, no link to it, or a rule holds the follower
    TRUNCATING  an OffsetForLeaderEpoch of its last record's epoch is in flight (KIP-101)
    FETCHING    a Fetch from its log end offset is in flight
    WAITING     the leader refused or did not answer; it sends the next request after a back-off

Since KIP-595 a Fetch carries the epoch of the last record, and the leader answers with the point of
divergence instead of records when the logs diverge: a modern follower is never TRUNCATING. The
older ways show what epochs prevent (`Truncation`).

An answer has records, the leader's high watermark and its log start offset. The high watermark that
follows from a fetch reaches the follower with the next answer: one round trip late.

The machine is pure: events in, effects out. It owns its replica's log. Answers carry the number of
their request; late ones are dropped, as the table says.

Source: AbstractFetcherThread, ReplicaFetcherThread.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mockbroker.core.log.leader_epoch_cache import NO_EPOCH, NO_OFFSET, LeaderEpochCache
from mockbroker.core.log.replica_log import LogSlice
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.replication.replica import Replica


class FetcherState(Enum):
    __hash__ = object.__hash__  # a member is one object, and Enum's own hash is slow

    IDLE = "idle"
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    WAITING = "waiting"


_REQUESTING = (FetcherState.TRUNCATING, FetcherState.FETCHING)


class Truncation(Enum):
    """The way in which a follower finds the divergence of its log."""

    FETCH = "fetch"  # by the epoch in each Fetch (KIP-595): Kafka since 2.7
    EPOCH = "epoch"  # by an OffsetForLeaderEpoch before the first Fetch (KIP-101): 0.11 to 2.6
    HIGH_WATERMARK = "hw"  # to its own high watermark: up to 0.10


# -- events ----------------------------------------------------------------------------------------


class Follow(NamedTuple):
    """The follower can fetch from this leader, under this epoch."""

    leader_id: int
    leader_epoch: int


class Halt(NamedTuple):
    """The follower has no leader from which it can fetch."""


class Fetched(NamedTuple):
    """Records, or none, with the leader's high watermark and log start."""

    number: int
    records: LogSlice | None
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


class RefusedPartition(NamedTuple):
    """The leader's error for the partition."""

    number: int
    error: int


class RetryDue(NamedTuple):
    """The back-off or the request timeout is over."""

    number: int


Answer = Fetched | Diverged | OutOfRange | EpochEnd | RefusedPartition
Event = Follow | Halt | Answer | RetryDue


# -- effects ---------------------------------------------------------------------------------------


class Fetch(NamedTuple):
    """Request records from `offset` on."""

    number: int
    leader_id: int
    leader_epoch: int
    offset: int
    last_epoch: int
    log_start_offset: int


class OffsetForLeaderEpoch(NamedTuple):
    """Request the end offset of `epoch`."""

    number: int
    leader_id: int
    leader_epoch: int
    epoch: int


class Pause(NamedTuple):
    """Schedule a `RetryDue` with this number after the fetcher's back-off."""

    number: int


class Truncated(NamedTuple):
    """The log was truncated to `offset`."""

    former_end_offset: int
    offset: int


class Advanced(NamedTuple):
    """The log grew, or its watermarks moved."""

    former_high_watermark: int


FetcherRequest = Fetch | OffsetForLeaderEpoch
Effect = FetcherRequest | Pause | Truncated | Advanced


# -- the table -------------------------------------------------------------------------------------


class FetcherAction(Enum):
    """The action of an event in a state."""

    BEGIN = "follow this leader"
    STOP = "send no more requests"
    APPEND = "append, and fetch on"
    DIVERGE = "truncate to where the logs diverge, and fetch on"
    MOVE = "move into the range of the leader's log, and fetch on"
    TRUNCATE = "truncate to the end of the epoch; fetch, or request the epoch before"
    BACK_OFF = "wait before the next request"
    RETRY = "send the request again"
    DROP = "drop the answer to an earlier request"


_S = FetcherAction
TRANSITIONS: dict[
    type[Event], tuple[FetcherAction, FetcherAction, FetcherAction, FetcherAction]
] = {
    #            IDLE       TRUNCATING   FETCHING     WAITING
    Follow: (_S.BEGIN, _S.BEGIN, _S.BEGIN, _S.BEGIN),
    Halt: (_S.STOP, _S.STOP, _S.STOP, _S.STOP),
    Fetched: (_S.DROP, _S.DROP, _S.APPEND, _S.DROP),
    Diverged: (_S.DROP, _S.DROP, _S.DIVERGE, _S.DROP),
    OutOfRange: (_S.DROP, _S.DROP, _S.MOVE, _S.DROP),
    EpochEnd: (_S.DROP, _S.TRUNCATE, _S.DROP, _S.DROP),
    RefusedPartition: (_S.DROP, _S.BACK_OFF, _S.BACK_OFF, _S.DROP),
    # During a request: the request or its response was lost.
    RetryDue: (_S.DROP, _S.RETRY, _S.RETRY, _S.RETRY),
}
_NUMBERLESS = (Follow, Halt)
_COLUMNS = {state: column for column, state in enumerate(FetcherState)}


class ReplicaFetcher:
    """The fetcher of one follower of one partition."""

    __slots__ = ("_number", "_settled", "following", "limits", "replica", "state", "truncation")

    def __init__(self, replica: Replica, limits: RollLimits, truncation: Truncation) -> None:
        self.replica = replica
        self.limits = limits
        self.truncation = truncation
        self.state = FetcherState.IDLE
        self.following: Follow | None = None
        self._number = 0  # of the request in flight
        self._settled = False  # the log is known to be a prefix of the leader's

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns the requests and the changes of the replica."""
        step = TRANSITIONS[type(event)][_COLUMNS[self.state]]
        if not isinstance(event, _NUMBERLESS) and event.number != self._number:
            return []
        match event:
            case Fetched() if step is FetcherAction.APPEND:
                return [*self._append(event, now_ms), *self._send()]
            case Follow() if step is FetcherAction.BEGIN:
                return self._begin(event)
            case Halt() if step is FetcherAction.STOP:
                self.state, self.following = FetcherState.IDLE, None
                self._number += 1
            case Diverged() if step is FetcherAction.DIVERGE:
                return [*self._truncate_to_divergence(event.epoch, event.end_offset), *self._send()]
            case OutOfRange() if step is FetcherAction.MOVE:
                return [*self._move_into_range(event), *self._send()]
            case EpochEnd() if step is FetcherAction.TRUNCATE:
                return [*self._truncate_to_divergence(event.epoch, event.end_offset), *self._send()]
            case RefusedPartition() if step is FetcherAction.BACK_OFF:
                self.state = FetcherState.WAITING
                return [Pause(self._number)]
            case RetryDue() if step is FetcherAction.RETRY:
                return self._send()
            case _:
                assert step is FetcherAction.DROP
        return []

    # -- requests ----------------------------------------------------------------------------------

    def is_in_flight(self, number: int) -> bool:
        """Whether the request with this number is in flight."""
        return number == self._number and self.state in _REQUESTING

    def _begin(self, leader: Follow) -> list[Effect]:
        """Follow a leader. Does nothing if it is followed already."""
        if leader == self.following:
            return []
        self.following = leader
        self._settled = self.truncation is Truncation.FETCH
        effects: list[Effect] = []
        if self.truncation is Truncation.HIGH_WATERMARK or self._latest_epoch() == NO_EPOCH:
            effects += self._truncate(self.replica.high_watermark)
            self._settled = True
        return effects + self._send()

    def _send(self) -> list[Effect]:
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

    def _append(self, answer: Fetched, now_ms: int) -> list[Effect]:
        replica = self.replica
        log = replica.log
        former = replica.high_watermark
        news = False
        if answer.records is not None:
            log.append_slice(answer.records, now_ms, self.limits)
            news = True
        if answer.log_start_offset <= log.end_offset:
            news |= log.move_start(answer.log_start_offset)
        news |= replica.update_high_watermark(answer.high_watermark)
        return [Advanced(former)] if news else []

    def _truncate_to_divergence(self, epoch: int, end_offset: int) -> list[Effect]:
        replica = self.replica
        point = truncation_point(
            replica.log.epochs, replica.log.end_offset, replica.high_watermark, epoch, end_offset
        )
        self._settled = point.settled or self.truncation is Truncation.FETCH
        return self._truncate(point.offset)

    def _truncate(self, offset: int) -> list[Effect]:
        former = self.replica.log.end_offset
        return [Truncated(former, offset)] if self.replica.truncate(offset) else []

    def _move_into_range(self, answer: OutOfRange) -> list[Effect]:
        """Truncate to the leader's log end, or start at its log start, which is above the end of
        this log (fetchOffsetAndTruncate).
        """
        log = self.replica.log
        if answer.log_end_offset < log.end_offset:
            return self._truncate(answer.log_end_offset)
        if answer.log_start_offset > log.end_offset:
            former = log.end_offset
            self.replica.truncate_fully_and_start_at(answer.log_start_offset)
            return [Truncated(former, answer.log_start_offset)]
        return []


# -- truncation ------------------------------------------------------------------------------------


class TruncationPoint(NamedTuple):
    """The offset to truncate to; `settled` if the log below it is known to equal the leader's."""

    offset: int
    settled: bool


def truncation_point(
    epochs: LeaderEpochCache, log_end_offset: int, high_watermark: int, epoch: int, end_offset: int
) -> TruncationPoint:
    """The truncation of a follower, by the leader's answer about the follower's last epoch.

    The leader answers with its largest epoch up to the requested one, and the end offset of that
    epoch. After an undefined answer the follower keeps the log up to the high watermark. A follower
    without that epoch drops its later epochs and sends another request (KIP-279).
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
