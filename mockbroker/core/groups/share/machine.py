"""The events of a share group and their handlers; `states` has the theory.

A member has one timer, its session, which each heartbeat re-arms.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from mockbroker.core.groups.modern.machine import Handlers, common_handlers, run
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker.core.groups.share.events import Effect, ShareHeartbeat, ShareLeave
from mockbroker.core.groups.share.group import ShareGroup
from mockbroker.core.groups.share.heartbeat import on_heartbeat, on_leave, remove_member


def handle(group: ShareGroup, event: object, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    return run(group, _HANDLERS, event, now_ms)


def _fence(group: ShareGroup, member_id: str, retry: SetTimer) -> None:
    remove_member(group, member_id, None, retry)


_HANDLERS: Handlers[ShareGroup] = {
    **common_handlers(_fence),
    ShareHeartbeat: on_heartbeat,
    ShareLeave: on_leave,
}
