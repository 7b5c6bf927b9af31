"""Changes of records in flight without a request of a member, for actions.

They take effect at once, and the state in the share coordinator is written as for other changes. A
record that is not in flight has no state to change. A record with an ongoing transition is left
out: its acknowledgement is being written.

`offsets` are a set of offsets, or None for all records in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from mockbroker.core.share.acknowledgement import change_of, chosen_parts
from mockbroker.core.share.emitters import ARCHIVED, COUNTED, HANDED_OUT, emit_forced
from mockbroker.core.share.in_flight import NO_LOCK, InFlightState
from mockbroker.core.share.partition import SharePartition, StateChange
from mockbroker.core.share.states import NO_MEMBER, RecordEvent, RecordState


def is_acquired(state: InFlightState) -> bool:
    """Whether a member has the record."""
    return state.state is RecordState.ACQUIRED


def acquired_by(fits: Callable[[str], bool]) -> Callable[[InFlightState], bool]:
    """Whether a fitting member has the record."""
    return lambda state: is_acquired(state) and fits(state.member_id)


def is_open(state: InFlightState) -> bool:
    """Whether the record is neither final nor in an ongoing transition."""
    return state.is_acquirable or is_acquired(state)


def archive(share: SharePartition, offsets: Collection[int] | None) -> int:
    """Archive records that are not final; returns how many."""
    changes: list[StateChange] = []
    for batch in share.batches:
        for first, last, state in chosen_parts(share, batch, is_open, offsets):
            member_id = state.member_id
            event = RecordEvent.ABORT if is_acquired(state) else RecordEvent.REMOVE
            state.archive(event)
            changes.append(change_of(batch, first, last, state, event, member_id))
            share.delivery_complete_count += share.in_flight_of(first, last)
    emit_forced(share, changes, ARCHIVED)
    _write(share, changes)
    return _count(changes)


def set_delivery_count(
    share: SharePartition, offsets: Collection[int] | None, count: int | None
) -> int:
    """Set the delivery count of records that are not final; returns how many.

    Without `count` their present delivery is the last one, or for Available ones the next. The
    share coordinator has the counts of Available records only.
    """
    limit = share.configs.delivery_count_limit
    changes: list[StateChange] = []
    written: list[StateChange] = []
    for batch in share.batches:
        for first, last, state in chosen_parts(share, batch, is_open, offsets):
            state.delivery_count = limit - state.is_acquirable if count is None else count
            event = RecordEvent.RENEW  # the state stays
            changes.append(change_of(batch, first, last, state, event, state.member_id))
            if state.is_acquirable:
                written.append(changes[-1])
    emit_forced(share, changes, COUNTED)
    _write(share, written)
    return _count(changes)


def hand_out_again(
    share: SharePartition, offsets: Collection[int] | None, fits: Callable[[str], bool]
) -> int:
    """Let the next fetch acquire records that a fitting member has acquired; returns how many.

    Nothing is written, as if the broker had forgotten the member. Its acknowledgement is refused.
    """
    changes: list[StateChange] = []
    for batch in share.batches:
        for first, last, state in chosen_parts(share, batch, acquired_by(fits), offsets):
            member_id = state.member_id
            state.state = RecordState.AVAILABLE
            state.member_id, state.lock_deadline_ms = NO_MEMBER, NO_LOCK
            changes.append(change_of(batch, first, last, state, RecordEvent.RELEASE, member_id))
    emit_forced(share, changes, HANDED_OUT)
    if changes:
        share.find_next_fetch_offset = True
        share.notify()
    return _count(changes)


def _write(share: SharePartition, changes: list[StateChange]) -> None:
    if not changes:
        return
    share.find_next_fetch_offset = True
    share.write(changes, lambda _: None)
    share.move_start()
    share.notify()


def _count(changes: list[StateChange]) -> int:
    return sum(change.last_offset - change.first_offset + 1 for change in changes)
