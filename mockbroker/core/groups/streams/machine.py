"""The events of a streams group and their handlers; `states` has the theory.

Two timers run for a member: its session, re-armed by each heartbeat, and a rebalance timer while it
has tasks to revoke. A timer of the group ends the initial rebalance delay.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.events import Reply, Tick
from mockbroker.core.groups.modern.events import Store, removal
from mockbroker.core.groups.modern.machine import Handlers, common_handlers, run
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.streams.events import Effect, StreamsHeartbeat, StreamsLeave
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.heartbeat import on_heartbeat
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker.core.groups.streams.targets import new_targets


def handle(group: StreamsGroup, event: object, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    return run(group, _HANDLERS, event, now_ms)


def _on_leave(group: StreamsGroup, leave: StreamsLeave, _: int) -> None:
    if leave.shutdown and group.shutdown_by is None:
        group.shutdown_by = leave.member_id
    try:
        group.known_member(leave.member_id)
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
    changes = (*removal(member_id), group.next_epoch())
    timers = tuple(SetTimer(kind, member_id, None) for kind in TimerKind)
    group.effects.append(Store(changes=changes, answer=answer, timers=timers, retry=retry))


def _on_tick(group: StreamsGroup, tick: Tick, now_ms: int) -> None:
    delay_ms = group.initial_delay_until_ms
    if delay_ms is not None and delay_ms <= now_ms:
        group.initial_delay_until_ms = None
        _assign_delayed(group, now_ms)
    else:
        _COMMON[Tick](group, tick, now_ms)


def _assign_delayed(group: StreamsGroup, now_ms: int) -> None:
    """The initial rebalance delay is over: assign all members that have joined meanwhile.

    A group whose members have not sent a second heartbeat has no configured topology yet; the next
    heartbeat assigns then (computeDelayedTargetAssignment).
    """
    configured = group.configured
    if group.is_empty() or configured is None or group.epoch <= group.assignment_epoch:
        return
    if group.may_assign(now_ms):
        _, changes = new_targets(group, group.members, configured, group.epoch, now_ms)
        group.effects.append(Store(changes=tuple(changes)))


def _fence_expired(group: StreamsGroup, member_id: str, retry: SetTimer) -> None:
    _fence(group, member_id, None, retry)


_COMMON: Handlers[StreamsGroup] = common_handlers(_fence_expired)
_HANDLERS: Handlers[StreamsGroup] = {
    **_COMMON,
    StreamsHeartbeat: on_heartbeat,
    StreamsLeave: _on_leave,
    Tick: _on_tick,
}
