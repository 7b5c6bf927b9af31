"""How records in flight leave the hands of a member: acknowledged, released, or with their lock.

An acknowledgement counts whole or not at all: if one of its batches is refused, the transitions of
the others are rolled back, and nothing is written. Renewed locks stay renewed.

Source: SharePartition.acknowledge, .releaseAcquiredRecords, .releaseAcquisitionLockOnTimeout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.share.emitters import (
    RecordsFact,
    emit_completed,
    emit_expired,
    emit_facts,
    emit_writing,
)
from mockbroker.core.share.in_flight import InFlightBatch, InFlightState
from mockbroker.core.share.partition import SharePartition, StateChange, Then
from mockbroker.core.share.states import (
    ACKNOWLEDGE_TYPES,
    FINAL_STATES,
    NO_MEMBER,
    RecordEvent,
    RecordState,
)
from mockbroker_protocol import ErrorCode

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
FIRST_PAST = "Batch record not found. The first offset in request is past acquired records."
LAST_PAST = "Batch record not found. The last offset in request is past acquired records."
BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
SUBSET_NOT_ACQUIRED = (
    "The batch cannot be acknowledged. The subset batch is not in the acquired state."
)
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
ONGOING = "The record state is invalid. The acknowledgement of delivery could not be completed."
NOT_OWNER_OF_BATCH = "Member is not the owner of batch record"
NOT_OWNER_OF_OFFSET = "Member is not the owner of offset"
RENEW_DISABLED = "Renewing acquisition locks is not enabled for the group."


class AcknowledgementBatch(NamedTuple):
    """A range of offsets, with one acknowledge type for all of them or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def event(self, offset: int) -> RecordEvent:
        """The event of one offset of the range."""
        types = self.types
        return ACKNOWLEDGE_TYPES[types[0] if len(types) == 1 else types[offset - self.first_offset]]


def acknowledge(
    share_partition: SharePartition,
    member_id: str,
    batches: Sequence[AcknowledgementBatch],
    then: Then,
) -> None:
    """Acknowledge ranges of records that a member has acquired; `then` when that is written."""
    acknowledgement = _Acknowledgement(share_partition, member_id)
    error: ApiError | None = None
    try:
        for batch in batches:
            acknowledgement.apply(batch)
    except ApiError as refused:
        error = refused
    emit_facts(share_partition, acknowledgement.renewed)
    _finish(share_partition, acknowledgement.changes, error, then)


def release_acquired(share_partition: SharePartition, member_id: str, then: Then) -> None:
    """Release all records that a member has acquired: its share session has ended."""
    share = share_partition
    limit = share.configs.delivery_count_limit
    changes: list[StateChange] = []

    def leaves(state: InFlightState) -> bool:
        return state.is_acquired_by(member_id)

    for batch in share.batches:
        for first, last, state in chosen_parts(share, batch, leaves):
            below, event = last < share.start_offset, RecordEvent.LEAVE
            state.begin(event, limit, below_start=below)
            _note(share, changes, change_of(batch, first, last, state, event, member_id))
    _finish(share, changes, None, then)


def expire_locks(share_partition: SharePartition) -> int | None:
    """End the acquisition locks that are due; returns the next deadline (ms), or None."""
    now_ms = share_partition.now_ms()
    expire(share_partition, lambda state: state.lock_is_over(now_ms))
    return _next_deadline(share_partition, now_ms)


def expire(
    share_partition: SharePartition,
    leaves: Callable[[InFlightState], bool],
    offsets: Collection[int] | None = None,
) -> int:
    """End the locks of acquired records for which `leaves` holds, all or those at `offsets`.

    Returns the number of records.
    """
    share = share_partition
    limit = share.configs.delivery_count_limit
    changes: list[StateChange] = []
    for batch in share.batches:
        for first, last, state in chosen_parts(share, batch, leaves, offsets):
            member_id, event = state.member_id, RecordEvent.EXPIRE
            state.expire(limit, below_start=last < share.start_offset)
            _note(share, changes, change_of(batch, first, last, state, event, member_id))
            if state.state is RecordState.AVAILABLE:
                share.find_next_fetch_offset = True
    if changes:
        emit_expired(share, changes)
        share.write(changes, lambda _: _move_start(share))
        share.notify()
    return sum(change.last_offset - change.first_offset + 1 for change in changes)


def _move_start(share: SharePartition) -> None:
    share.move_start()


def _next_deadline(share: SharePartition, now_ms: int) -> int | None:
    """Also that of a lock with an ongoing transition, which may be rolled back."""
    deadlines = (
        state.lock_deadline_ms
        for batch in share.batches
        for _, _, state in batch.parts()
        if state.lock_deadline_ms > now_ms
    )
    return min(deadlines, default=None)


def chosen_parts(
    share: SharePartition,
    batch: InFlightBatch,
    chosen: Callable[[InFlightState], bool],
    offsets: Collection[int] | None = None,
) -> list[tuple[int, int, InFlightState]]:
    """The chosen states of a batch, all or those at `offsets`, each with its first and last offset.

    A chosen batch that is not wholly at `offsets`, or that the SPSO divides, is split, because its
    parts get different states.
    """
    whole = batch.whole
    if whole is not None:
        if not chosen(whole):
            return []
        inside = batch.count if offsets is None else _count_inside(batch, offsets)
        if inside == 0:
            return []
        if inside < batch.count or batch.contains_start(share.start_offset):
            batch.split()
    return [
        part
        for part in batch.parts()
        if chosen(part[2]) and (offsets is None or batch.whole is not None or part[0] in offsets)
    ]


def _count_inside(batch: InFlightBatch, offsets: Collection[int]) -> int:
    return sum(batch.first_offset <= each <= batch.last_offset for each in offsets)


class _Acknowledgement:
    """The acknowledgement of one request, for one share partition."""

    __slots__ = ("_limit", "_member_id", "_share", "changes", "renewed")

    def __init__(self, share_partition: SharePartition, member_id: str) -> None:
        self._share = share_partition
        self._member_id = member_id
        self._limit = share_partition.configs.delivery_count_limit
        self.changes: list[StateChange] = []
        self.renewed: list[RecordsFact] = []  # filled for listeners only

    def apply(self, request: AcknowledgementBatch) -> None:
        """Apply one range. Raises ApiError."""
        share = self._share
        unknown = [each for each in request.types if each not in ACKNOWLEDGE_TYPES]
        if unknown:
            types = ", ".join(map(str, request.types))
            _refuse(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: [{types}]")
        if request.last_offset < share.start_offset:
            return
        for batch in self._batches(request):
            if batch.last_offset < share.start_offset:
                continue
            if batch.whole is not None:
                self._check_whole(batch.whole)
            if (
                batch.whole is not None
                and batch.is_within(request.first_offset, request.last_offset)
                and len(request.types) == 1
                and not batch.contains_start(share.start_offset)
            ):
                self._apply_whole(batch, batch.whole, request.event(request.first_offset))
                continue
            if batch.whole is not None:
                if batch.whole.state is not RecordState.ACQUIRED:
                    _refuse(ErrorCode.INVALID_RECORD_STATE, SUBSET_NOT_ACQUIRED)
                batch.split()
            self._apply_offsets(batch, request)

    def _batches(self, request: AcknowledgementBatch) -> list[InFlightBatch]:
        """The batches in flight with offsets of a range, all of which must be in flight."""
        batches = self._share.batches
        floor = batches.floor(max(request.first_offset, self._share.start_offset))
        if floor is None:
            _refuse(ErrorCode.INVALID_RECORD_STATE, NOT_FOUND)
            raise AssertionError
        found = batches.beginning_in(floor.first_offset, request.last_offset)
        last_offset = found[-1].last_offset
        if last_offset < request.first_offset:
            _refuse(ErrorCode.INVALID_REQUEST, FIRST_PAST)
        if last_offset < request.last_offset:
            _refuse(ErrorCode.INVALID_REQUEST, LAST_PAST)
        return found

    def _check_whole(self, state: InFlightState) -> None:
        if state.member_id == NO_MEMBER:
            _refuse(ErrorCode.INVALID_RECORD_STATE, BATCH_NOT_ACQUIRED)
        if state.member_id != self._member_id:
            _refuse(ErrorCode.INVALID_RECORD_STATE, NOT_OWNER_OF_BATCH)
        if state.has_ongoing_transition:
            _refuse(ErrorCode.INVALID_RECORD_STATE, ONGOING)

    def _apply_whole(self, batch: InFlightBatch, state: InFlightState, event: RecordEvent) -> None:
        if state.state is not RecordState.ACQUIRED:
            _refuse(ErrorCode.INVALID_RECORD_STATE, BATCH_NOT_ACQUIRED)
        self._apply(batch, batch.first_offset, batch.last_offset, state, event)

    def _apply_offsets(self, batch: InFlightBatch, request: AcknowledgementBatch) -> None:
        first = max(request.first_offset, self._share.start_offset)
        for offset, state in batch.states(first, request.last_offset):
            if state.state is not RecordState.ACQUIRED:
                _refuse(ErrorCode.INVALID_RECORD_STATE, OFFSET_NOT_ACQUIRED)
            if state.has_ongoing_transition:
                _refuse(ErrorCode.INVALID_RECORD_STATE, ONGOING)
            if state.member_id != self._member_id:
                _refuse(ErrorCode.INVALID_RECORD_STATE, NOT_OWNER_OF_OFFSET)
            self._apply(batch, offset, offset, state, request.event(offset))

    def _apply(
        self,
        batch: InFlightBatch,
        first_offset: int,
        last_offset: int,
        state: InFlightState,
        event: RecordEvent,
    ) -> None:
        share = self._share
        if event is RecordEvent.RENEW:
            if not share.configs.may_renew:
                _refuse(ErrorCode.INVALID_RECORD_STATE, RENEW_DISABLED)
            state.renew(share.new_lock())
            if share.runtime.on_event:
                self.renewed.append(RecordsFact.of(event, first_offset, last_offset, state))
            return
        state.begin(event, self._limit)
        change = change_of(batch, first_offset, last_offset, state, event, self._member_id)
        _note(share, self.changes, change)


def _refuse(error: ErrorCode, message: str) -> None:
    raise ApiError(error, message)


def change_of(
    batch: InFlightBatch,
    first_offset: int,
    last_offset: int,
    state: InFlightState,
    event: RecordEvent,
    member_id: str,
) -> StateChange:
    """The change after an event of records that a member had acquired."""
    return StateChange(
        batch, first_offset, last_offset, state.state, state.delivery_count, event, member_id
    )


def _note(share: SharePartition, changes: list[StateChange], change: StateChange) -> None:
    changes.append(change)
    if change.state in FINAL_STATES:
        share.delivery_complete_count += share.in_flight_of(change.first_offset, change.last_offset)


def _finish(
    share: SharePartition, changes: Sequence[StateChange], error: ApiError | None, then: Then
) -> None:
    """Write the changes and complete them, or roll them back for an error."""
    if error is not None:
        share.complete(changes, written=False)
        then(error)
        return
    if not changes:
        then(None)
        return

    is_answered = False

    def written(failure: ApiError | None) -> None:
        nonlocal is_answered
        is_answered = True
        share.complete(changes, written=failure is None)
        emit_completed(share, changes, written=failure is None)
        moved = failure is None and share.move_start()
        then(failure)
        if moved:
            share.notify()

    share.write(changes, written)
    if not is_answered:
        emit_writing(share, changes)
