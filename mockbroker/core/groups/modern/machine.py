"""The state machines of groups of the newer protocols; the `states` of each have the theory.

A machine runs to completion and returns the effects. It draws no ids, reads no clock and writes
nothing: records to store are an effect, and only stored changes change the group. The outcome of a
Store must be the next event of its group. A member whose timer expires is removed.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from mockbroker.core.groups.events import (
    HeartbeatResult,
    JoinResult,
    LeaveResult,
    Loaded,
    Reply,
    Result,
    SyncResult,
    Tick,
    Unload,
)
from mockbroker.core.groups.modern.events import Store, Stored
from mockbroker.core.groups.modern.group import ModernGroup
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker_protocol import ErrorCode

AnyGroup: TypeAlias = ModernGroup[Any, Any, Any, Any]
G = TypeVar("G", bound=AnyGroup)

RETRY_MS = 500  # CoordinatorRuntime's back-off after a timer's write has failed

Handlers = Mapping[type, Callable[[G, Any, int], None]]
Fence = Callable[[G, str, SetTimer], None]


def run(group: G, handlers: Handlers[G], event: object, now_ms: int) -> list[Any]:
    """Handle one event; returns the effects in order."""
    assert not group.effects
    group.timers.now_ms = now_ms
    handlers[type(event)](group, event, now_ms)
    effects, group.effects = group.effects, []
    return effects


def common_handlers(fence: Fence[G]) -> Handlers[G]:
    """The handlers of events that all protocols have. `fence` removes a member, and sets the timer
    again if that cannot be stored.
    """

    def on_tick(group: G, _: Tick, now_ms: int) -> None:
        """Handle one expired timer, because its changes may cancel others."""
        while (timer := group.timers.pop_expired(now_ms)) is not None:
            member = group.members.get(timer.member_id)
            if member is not None and timer.member_epoch in (None, member.epoch):
                retry = SetTimer(timer.kind, timer.member_id, now_ms, timer.member_epoch)
                fence(group, timer.member_id, retry)
                return

    return {Stored: _on_stored, Tick: on_tick, Loaded: _on_loaded, Unload: _on_unload}


def submit(group: AnyGroup, store: Store) -> None:
    """Store the changes of a request and answer it; without changes nothing is stored."""
    if store.changes:
        group.effects.append(store)
    else:
        _finish(group, store, created=False)


def _finish(group: AnyGroup, store: Store, *, created: bool) -> None:
    for timer in store.timers:
        group.timers.set(timer)
    if store.answer is not None:
        group.effects.append(store.answer)
    group.on_stored(store, created=created)


def _on_stored(group: AnyGroup, stored: Stored, now_ms: int) -> None:
    store = stored.store
    if stored.error is ErrorCode.NONE:
        group.apply(store.changes)
        _finish(group, store, created=stored.created)
        return
    group.request_metadata_refresh()
    if store.answer is not None:
        result = _error_result(store.answer.result, stored.error)
        group.effects.append(Reply(store.answer.callback, result))
    elif store.retry is not None:
        retry = msgspec.structs.replace(store.retry, deadline_ms=now_ms + RETRY_MS)
        group.timers.set(retry)


def _error_result(result: Result, error: ErrorCode) -> Result:
    """The answer that replaces `result` after a failed write."""
    if isinstance(result, JoinResult | SyncResult | HeartbeatResult | LeaveResult):
        return type(result)(error=error)
    return type(result)(error=error, message=error.message)


def _on_loaded(group: AnyGroup, _: Loaded, now_ms: int) -> None:
    """Sessions begin anew, and so does the time that a member has to revoke."""
    for member in group.members.values():
        session_ms = now_ms + group.settings.session_timeout_ms
        group.timers.set(SetTimer(TimerKind.SESSION, member.member_id, session_ms))
        if group.must_revoke(member):
            due_ms = now_ms + member.rebalance_timeout_ms
            group.timers.set(SetTimer(TimerKind.REBALANCE, member.member_id, due_ms, member.epoch))


def _on_unload(group: AnyGroup, _: Unload, __: int) -> None:
    group.dead = True
