"""The state machine of a consumer group; `states` has the theory.

`handle` runs to completion and returns the effects. The machine draws no ids, reads no clock and
writes nothing: records to store are an effect, and only stored changes change the group. The
outcome of a Store must be the next event of its group.

Four timers run for a member: its session, re-armed by each heartbeat; a rebalance timer while it
has partitions to revoke; and, for a member of the classic protocol, a join timer and a sync timer.
A member whose timer expires is removed.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockbroker.core.groups.consumer.classic import on_heartbeat, on_join, on_leave, on_sync
from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    ConsumerLeave,
    Effect,
    RegexesResolved,
    Store,
    Stored,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.heartbeat import on_consumer_heartbeat, on_regexes_resolved
from mockbroker.core.groups.consumer.leaving import fence_members, on_consumer_leave
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    ConsumerResult,
    Delete,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    Loaded,
    Reply,
    Result,
    Sync,
    SyncResult,
    Tick,
    Unload,
)
from mockbroker.core.groups.modern.timers import MemberTimer, SetTimer, TimerKind
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE
RETRY_MS = 500  # CoordinatorRuntime's back-off after a timer's write has failed


def handle(group: ConsumerGroup, event: object, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    assert not group.effects
    group.timers.now_ms = now_ms
    _HANDLERS[type(event)](group, event, now_ms)
    effects, group.effects = group.effects, []
    return effects


def _on_stored(group: ConsumerGroup, stored: Stored, now_ms: int) -> None:
    store = stored.store
    if stored.error is NONE:
        group.apply(store.changes)
        for timer in store.timers:
            group.timers.set(timer)
        if store.answer is not None:
            group.effects.append(store.answer)
        return
    group.request_metadata_refresh()
    if store.answer is not None:
        result = _error_result(store.answer.result, stored.error)
        group.effects.append(Reply(store.answer.callback, result))
    elif store.retry is not None:
        retry = msgspec.structs.replace(store.retry, deadline_ms=now_ms + RETRY_MS)
        group.timers.set(retry)


def _on_tick(group: ConsumerGroup, _: Tick, now_ms: int) -> None:
    """Handle one expired timer, because its changes may cancel others."""
    while (timer := group.timers.pop_expired(now_ms)) is not None:
        if _is_current(group, timer):
            retry = SetTimer(timer.kind, timer.member_id, now_ms, timer.member_epoch)
            fence_members(group, frozenset({timer.member_id}), None, retry)
            return


def _is_current(group: ConsumerGroup, timer: MemberTimer) -> bool:
    member = group.members.get(timer.member_id)
    return member is not None and timer.member_epoch in (None, member.epoch)


def _on_loaded(group: ConsumerGroup, _: Loaded, now_ms: int) -> None:
    for member in group.members.values():
        session_ms = now_ms + group.settings.session_timeout_ms
        group.timers.set(SetTimer(TimerKind.SESSION, member.member_id, session_ms))
        if member.state is MemberState.UNREVOKED:
            due_ms = now_ms + member.rebalance_timeout_ms
            group.timers.set(SetTimer(TimerKind.REBALANCE, member.member_id, due_ms, member.epoch))


def _on_unload(group: ConsumerGroup, _: Unload, __: int) -> None:
    group.dead = True


def _on_delete(group: ConsumerGroup, _: Delete, __: int) -> None:
    assert group.is_empty()
    group.effects.append(Store(changes=group.tombstones()))


def _error_result(result: Result, error: ErrorCode) -> Result:
    """The answer that replaces `result` after a failed write."""
    match result:
        case ConsumerResult():
            return ConsumerResult(error=error, message=error.message)
        case JoinResult():
            return JoinResult(error=error, member_id=NO_MEMBER_ID)
        case SyncResult():
            return SyncResult(error=error)
        case HeartbeatResult():
            return HeartbeatResult(error)
        case _:
            return LeaveResult(error)


_HANDLERS: dict[type, Callable[[ConsumerGroup, Any, int], None]] = {
    ConsumerHeartbeat: on_consumer_heartbeat,
    ConsumerLeave: on_consumer_leave,
    RegexesResolved: on_regexes_resolved,
    Stored: _on_stored,
    Join: on_join,
    Sync: on_sync,
    Heartbeat: on_heartbeat,
    Leave: on_leave,
    Tick: _on_tick,
    Loaded: _on_loaded,
    Unload: _on_unload,
    Delete: _on_delete,
}
