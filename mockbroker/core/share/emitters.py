"""Emit the events of share partitions: ranges of records, and the share-partition start offset.

A *fact* is one event of a range of offsets. Neighbouring facts that are equal otherwise become one
event. Nothing is collected while `Runtime.on_event` is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.events import ShareRecordsMoved, ShareStartMoved
from mockbroker.core.ids import uuid_text
from mockbroker.core.share.states import RecordEvent, RecordState

if TYPE_CHECKING:
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.share.in_flight import InFlightState
    from mockbroker.core.share.partition import SharePartition, StateChange
    from mockbroker.core.share.records import ShareRecord
    from mockbroker_protocol.messages.share_fetch import AcquiredRecords

UNKNOWN_OFFSET = -1
WRITING = "writing"
ROLLED_BACK = "rolled_back"
# The changes of actions (see `forcing`).
ARCHIVED = "archived"
COUNTED = "counted"
HANDED_OUT = "handed_out"

CHANGES: Mapping[RecordEvent, str] = {
    RecordEvent.ACQUIRE: "acquired",
    RecordEvent.ACCEPT: "accepted",
    RecordEvent.RELEASE: "released",
    RecordEvent.REJECT: "rejected",
    RecordEvent.GAP: "gap",
    RecordEvent.RENEW: "renewed",
    RecordEvent.EXPIRE: "lock_expired",
    RecordEvent.LEAVE: "session_ended",
    RecordEvent.REMOVE: "removed",
    RecordEvent.ABORT: "aborted",
}
STATES: Mapping[RecordState, str] = {each: each.name.capitalize() for each in RecordState}


class RecordsFact(NamedTuple):
    """One event of the records from `first_offset` to `last_offset`, and their state after it."""

    change: str
    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str
    reason: str = ""

    @classmethod
    def of(
        cls, event: RecordEvent, first_offset: int, last_offset: int, state: InFlightState,
        reason: str = "",
    ) -> RecordsFact:  # fmt: skip
        """The fact of an event that has just led to `state`."""
        return cls(
            CHANGES[event], first_offset, last_offset, state.state, state.delivery_count,
            state.member_id, reason,
        )  # fmt: skip

    def continues(self, former: RecordsFact, last_offset: int) -> bool:
        """Whether it is the same event as `former`, of the offset behind `last_offset`."""
        return (
            self.first_offset == last_offset + 1
            and self.change == former.change
            and self[3:] == former[3:]
        )


def emit_acquired(share: SharePartition, member_id: str, ranges: Sequence[AcquiredRecords]) -> None:
    """A member has acquired ranges of records."""
    if share.runtime.on_event:
        change, state = CHANGES[RecordEvent.ACQUIRE], RecordState.ACQUIRED
        emit_facts(
            share,
            [
                RecordsFact(
                    change, each.first_offset, each.last_offset, state, each.delivery_count,
                    member_id,
                )
                for each in ranges
            ],
        )  # fmt: skip


def emit_expired(share: SharePartition, changes: Sequence[StateChange]) -> None:
    """Acquisition locks have ended. That takes effect before it is written."""
    if share.runtime.on_event:
        emit_facts(share, [_fact(share, each, CHANGES[each.event], each.state) for each in changes])


def emit_forced(share: SharePartition, changes: Sequence[StateChange], name: str) -> None:
    """An action has changed records; the cause of the event says which."""
    if share.runtime.on_event:
        emit_facts(
            share, [_fact(share, each, name, each.state)._replace(reason="") for each in changes]
        )


def emit_writing(share: SharePartition, changes: Sequence[StateChange]) -> None:
    """The share coordinator was sent new states, and has not answered yet."""
    if share.runtime.on_event:
        emit_facts(share, [_fact(share, each, WRITING, each.state) for each in changes])


def emit_completed(share: SharePartition, changes: Sequence[StateChange], *, written: bool) -> None:
    """The share coordinator has answered, and the transitions of `changes` have ended.

    A fenced share partition has no states any more: only the written ones are of interest.
    """
    if share.runtime.on_event and (written or share.is_active):
        emit_facts(
            share, [fact for each in changes for fact in each_fact(share, each, written=written)]
        )


def each_fact(
    share: SharePartition, change: StateChange, *, written: bool
) -> Iterator[RecordsFact]:
    """The facts of one change; the log may have lost some of its records meanwhile."""
    name = CHANGES[change.event] if written else ROLLED_BACK
    if change.batch.whole is not None:
        yield _fact(share, change, name, change.batch.whole.state)
        return
    if change.first_offset == change.last_offset:
        yield _fact(share, change, name, change.batch.state_at(change.first_offset).state)
        return
    for offset, state in change.batch.states(change.first_offset, change.last_offset):
        one = change._replace(first_offset=offset, last_offset=offset)
        yield _fact(share, one, name, state.state)


def _fact(share: SharePartition, change: StateChange, name: str, state: RecordState) -> RecordsFact:
    reason = ""
    if state is RecordState.ARCHIVED:
        reason = _reason(share, change)
    return RecordsFact(
        name, change.first_offset, change.last_offset, state, change.delivery_count,
        change.member_id, reason,
    )  # fmt: skip


def _reason(share: SharePartition, change: StateChange) -> str:
    """Why the records of a change are archived."""
    if change.event is RecordEvent.REJECT:
        return "rejected"
    if change.event is RecordEvent.GAP:
        return "gap"
    return "log_start" if change.last_offset < share.start_offset else "delivery_limit"


def emit_facts(share: SharePartition, facts: Iterable[RecordsFact]) -> None:
    """Emit facts, neighbours as one. Only for a runtime with listeners."""
    former: RecordsFact | None = None
    last_offset = UNKNOWN_OFFSET
    for fact in facts:
        if former is not None and not fact.continues(former, last_offset):
            _emit(share, former, last_offset)
            former = None
        former = former or fact
        last_offset = fact.last_offset
    if former is not None:
        _emit(share, former, last_offset)


def _emit(share: SharePartition, fact: RecordsFact, last_offset: int) -> None:
    runtime = share.runtime
    group_id, topic_id, index = share.key
    runtime.emit(
        ShareRecordsMoved(
            runtime.now_ms(),
            share.node_id,
            group_id,
            fact.member_id,
            share.partition.topic.name,
            uuid_text(topic_id),
            index,
            share.state_epoch,
            fact.change,
            fact.first_offset,
            last_offset,
            STATES[fact.state],
            fact.delivery_count,
            share.configs.delivery_count_limit,
            fact.reason,
            runtime.cause,
        )
    )


def emit_start(
    share: SharePartition, change: str, former: int = UNKNOWN_OFFSET, reason: str = ""
) -> None:
    """The start offset of a share partition is another one than `former`."""
    runtime = share.runtime
    if runtime.on_event and former != share.start_offset:
        group_id, topic_id, index = share.key
        runtime.emit(
            ShareStartMoved(
                runtime.now_ms(),
                share.node_id,
                group_id,
                share.partition.topic.name,
                uuid_text(topic_id),
                index,
                share.state_epoch,
                change,
                former,
                share.start_offset,
                reason,
                runtime.cause,
            )
        )


def emit_state(
    runtime: Runtime, node_id: int, topic: str, record: ShareRecord, change: str
) -> None:
    """The share coordinator `node_id` has begun or ended the state of a share partition."""
    if runtime.on_event:
        key, state = record.key, record.state
        runtime.emit(
            ShareStartMoved(
                runtime.now_ms(),
                node_id,
                key.group_id,
                topic,
                uuid_text(key.topic_id),
                key.partition,
                -1 if state is None else state.state_epoch,
                change,
                UNKNOWN_OFFSET,
                UNKNOWN_OFFSET if state is None else state.start_offset,
                "",
                runtime.cause,
            )
        )
