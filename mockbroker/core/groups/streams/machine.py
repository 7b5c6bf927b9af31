"""The state machine of a streams group; `states` has the theory.

`handle` runs to completion and returns the effects. The machine draws no ids, reads no clock and
writes nothing: records to store are an effect, and only stored changes change the group. The
outcome of a Store must be the next event of its group.

Two timers run for a member: its session, re-armed by each heartbeat, and a rebalance timer while it
has tasks to revoke. A member whose timer expires is removed. A timer of the group ends the initial
rebalance delay.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.events import Loaded, Reply, Tick, Unload
from mockbroker.core.groups.modern.timers import MemberTimer, SetTimer, TimerKind
from mockbroker.core.groups.streams.events import (
    Change,
    Effect,
    GroupChange,
    Store,
    Stored,
    StreamsHeartbeat,
    StreamsLeave,
    removal,
)
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.heartbeat import known_member, may_assign, on_heartbeat
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.targets import new_targets
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE
RETRY_MS = 500  # CoordinatorRuntime's back-off after a timer's write has failed


def handle(group: StreamsGroup, event: object, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    assert not group.effects
    group.timers.now_ms = now_ms
    _HANDLERS[type(event)](group, event, now_ms)
    effects, group.effects = group.effects, []
    return effects


def _on_leave(group: StreamsGroup, leave: StreamsLeave, _: int) -> None:
    if leave.shutdown and group.shutdown_by is None:
        group.shutdown_by = leave.member_id
    try:
        known_member(group, leave.member_id)
    except ApiError as error:
        result = StreamsResult(error=error.error, message=error.message)
        group.effects.append(Reply(leave.callback, result))
        return
    result = StreamsResult(member_id=leave.member_id, epoch=leave.epoch)
    _fence(group, leave.member_id, Reply(leave.callback, result))


def _fence(
    group: StreamsGroup, member_id: str, answer: Reply | None, retry: SetTimer | None = None
) -> None:
    """Remove a member; the group epoch rises, and the next heartbeat assigns its tasks."""
    changes: tuple[Change, ...] = (
        *removal(member_id),
        GroupChange(
            group.epoch + 1, group.metadata_hash, group.validated_epoch, group.assignment_configs
        ),
    )
    timers = tuple(SetTimer(kind, member_id, None) for kind in TimerKind)
    group.effects.append(Store(changes=changes, answer=answer, timers=timers, retry=retry))


def _on_stored(group: StreamsGroup, stored: Stored, now_ms: int) -> None:
    store = stored.store
    if stored.error is NONE:
        group.apply(store.changes)
        if stored.created:
            group.forget_unstored()
        else:
            group.apply_unstored(store.unstored)
        for timer in store.timers:
            group.timers.set(timer)
        if store.answer is not None:
            group.effects.append(store.answer)
        return
    group.request_metadata_refresh()
    if store.answer is not None:
        result = StreamsResult(error=stored.error, message=stored.error.message)
        group.effects.append(Reply(store.answer.callback, result))
    elif store.retry is not None:
        retry = msgspec.structs.replace(store.retry, deadline_ms=now_ms + RETRY_MS)
        group.timers.set(retry)


def _on_tick(group: StreamsGroup, _: Tick, now_ms: int) -> None:
    """Handle one expired timer, because its changes may cancel others."""
    delay_ms = group.initial_delay_until_ms
    if delay_ms is not None and delay_ms <= now_ms:
        group.initial_delay_until_ms = None
        _assign_delayed(group, now_ms)
        return
    while (timer := group.timers.pop_expired(now_ms)) is not None:
        if _is_current(group, timer):
            retry = SetTimer(timer.kind, timer.member_id, now_ms, timer.member_epoch)
            _fence(group, timer.member_id, None, retry)
            return


def _assign_delayed(group: StreamsGroup, now_ms: int) -> None:
    """The initial rebalance delay is over: assign all members that have joined meanwhile.

    A group whose members have not sent a second heartbeat has no configured topology yet; the next
    heartbeat assigns then (computeDelayedTargetAssignment).
    """
    configured = group.configured
    if group.is_empty() or configured is None or group.epoch <= group.assignment_epoch:
        return
    if may_assign(group, now_ms):
        _, changes = new_targets(group, group.members, configured, group.epoch, now_ms)
        group.effects.append(Store(changes=tuple(changes)))


def _is_current(group: StreamsGroup, timer: MemberTimer) -> bool:
    member = group.members.get(timer.member_id)
    return member is not None and timer.member_epoch in (None, member.epoch)


def _on_loaded(group: StreamsGroup, _: Loaded, now_ms: int) -> None:
    for member in group.members.values():
        session_ms = now_ms + group.settings.session_timeout_ms
        group.timers.set(SetTimer(TimerKind.SESSION, member.member_id, session_ms))
        if member.state is MemberState.UNREVOKED:
            due_ms = now_ms + member.rebalance_timeout_ms
            group.timers.set(SetTimer(TimerKind.REBALANCE, member.member_id, due_ms, member.epoch))


def _on_unload(group: StreamsGroup, _: Unload, __: int) -> None:
    group.dead = True


_HANDLERS: dict[type, Callable[[StreamsGroup, Any, int], None]] = {
    StreamsHeartbeat: on_heartbeat,
    StreamsLeave: _on_leave,
    Stored: _on_stored,
    Tick: _on_tick,
    Loaded: _on_loaded,
    Unload: _on_unload,
}
