"""The state machine of a share group; `states` has the theory.

`handle` runs to completion and returns the effects. The machine draws no ids, reads no clock and
writes nothing: records to store are an effect, and only stored changes change the group. The
outcome of a Store must be the next event of its group. A member has one timer, its session, which
each heartbeat re-arms.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockbroker.core.groups.events import ConsumerResult, Loaded, Reply, Tick, Unload
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.share.events import (
    Effect,
    ShareHeartbeat,
    ShareLeave,
    Stored,
)
from mockbroker.core.groups.share.group import ShareGroup
from mockbroker.core.groups.share.heartbeat import on_heartbeat, on_leave, remove_member
from mockbroker_protocol import ErrorCode

RETRY_MS = 500  # CoordinatorRuntime's back-off after a timer's write has failed


def handle(group: ShareGroup, event: object, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    assert not group.effects
    group.timers.now_ms = now_ms
    _HANDLERS[type(event)](group, event, now_ms)
    effects, group.effects = group.effects, []
    return effects


def _on_stored(group: ShareGroup, stored: Stored, now_ms: int) -> None:
    store = stored.store
    if stored.error is ErrorCode.NONE:
        group.apply(store.changes, now_ms)
        for timer in store.timers:
            group.timers.set(timer)
        if store.answer is not None:
            group.effects.append(store.answer)
        if store.initialize is not None:
            group.effects.append(store.initialize)
        return
    group.request_metadata_refresh()
    if store.answer is not None:
        result = ConsumerResult(error=stored.error, message=stored.error.message)
        group.effects.append(Reply(store.answer.callback, result))
    elif store.retry is not None:
        retry = msgspec.structs.replace(store.retry, deadline_ms=now_ms + RETRY_MS)
        group.timers.set(retry)


def _on_tick(group: ShareGroup, _: Tick, now_ms: int) -> None:
    """Handle one expired session; the next Tick handles the next."""
    while (timer := group.timers.pop_expired(now_ms)) is not None:
        if timer.member_id in group.members:
            retry = SetTimer(timer.kind, timer.member_id, now_ms)
            remove_member(group, timer.member_id, None, retry)
            return


def _on_loaded(group: ShareGroup, _: Loaded, now_ms: int) -> None:
    session_ms = now_ms + group.settings.session_timeout_ms
    for member_id in group.members:
        group.timers.set(SetTimer(TimerKind.SESSION, member_id, session_ms))


def _on_unload(group: ShareGroup, _: Unload, __: int) -> None:
    group.dead = True


_HANDLERS: dict[type, Callable[[ShareGroup, Any, int], None]] = {
    ShareHeartbeat: on_heartbeat,
    ShareLeave: on_leave,
    Stored: _on_stored,
    Tick: _on_tick,
    Loaded: _on_loaded,
    Unload: _on_unload,
}
