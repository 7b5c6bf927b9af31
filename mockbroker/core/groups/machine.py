"""The state machine of a classic group: the interpreter of the tables in `groups.states`.

`handle` runs to completion and returns the effects. The machine draws no ids, reads no clock and
writes nothing: a record to store is an effect, and its outcome is an event. A group has three kinds
of timers:

- the join timer: the initial delay of a group that was Empty, else the slowest member's rebalance
  timeout; a dynamic member that has not joined by then is removed (a static member stays);
- the pending-sync timer, of the same length, from the end of the join phase: a member that has not
  sent SyncGroup by then is removed, and the next rebalance begins;
- a session for each member, re-armed by Heartbeat, OffsetCommit and the end of each wait. It does
  not expire while the member's JoinGroup or SyncGroup waits, except in its first join, which is
  limited to five minutes. Member ids returned with MEMBER_ID_REQUIRED have one as well.

If a member sends a request while an older one of it waits, both are answered. Kafka drops the older
one without an answer, because its connection is closed.

Source: GroupMetadataManager, classicGroup*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockbroker.core.groups.classic import NONE, ClassicGroup
from mockbroker.core.groups.events import (
    NO_LEADER,
    NO_MEMBER_ID,
    Delete,
    Effect,
    EndSession,
    Event,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    LeftMember,
    Loaded,
    Persist,
    Persisted,
    Rebalance,
    Reply,
    StaticReplacement,
    Sync,
    Tick,
    Unload,
)
from mockbroker.core.groups.lazy_timers import LazyTimer, LazyTimerHeap
from mockbroker.core.groups.members import Member
from mockbroker.core.groups.rebalance import (
    maybe_complete_join,
    on_assignment_persisted,
    on_sync,
    on_tick,
    prepare_rebalance,
    rebalance_or_complete,
)
from mockbroker.core.groups.states import (
    ANSWERS,
    ClassicGroupState,
    RequestAction,
    RequestKind,
    Trigger,
)
from mockbroker_protocol import ErrorCode

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000  # classicGroupNewMemberJoinTimeoutMs, not configurable


def handle(group: ClassicGroup, event: Event, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    assert not group.effects
    _HANDLERS[type(event)](group, event, now_ms)
    effects, group.effects = group.effects, []
    return effects


# ------------------------------------------------------------------------------------- Join


def _on_join(group: ClassicGroup, join: Join, now_ms: int) -> None:
    if not _accepts_joining_member(group, join.member_id):
        member = group.members.get(join.member_id)
        if member is not None:
            group.remove_member(member)
        group.remove_pending_member(join.member_id)
        _refuse_join(group, join, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
    elif group.state is ClassicGroupState.DEAD:
        _refuse_join(group, join, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif not _supports(group, join):
        _refuse_join(group, join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif join.member_id == NO_MEMBER_ID:
        _join_new(group, join, now_ms)
    elif join.member_id in group.pending_join_members:
        if join.instance_id is not None:
            # Kafka throws an IllegalStateException here, because only dynamic members get ids.
            _refuse_join(group, join, ErrorCode.UNKNOWN_SERVER_ERROR, NO_MEMBER_ID)
        else:
            _add_and_rebalance(group, join, join.member_id, now_ms)
    else:
        error = group.validate_member(join.member_id, join.instance_id)
        if error is not NONE:
            _refuse_join(group, join, error)
        else:
            _join_known(group, join, group.members[join.member_id], now_ms)


def _accepts_joining_member(group: ClassicGroup, member_id: str) -> bool:
    """group.max.size: counts waiting JoinGroups in PreparingRebalance, else members."""
    members = group.members
    size_max = group.settings.size_max
    if group.state is ClassicGroupState.PREPARING:
        member = members.get(member_id)
        waits = member is not None and member.join_callback is not None
        return waits or group.members_awaiting_join < size_max
    if group.state in (ClassicGroupState.COMPLETING, ClassicGroupState.STABLE):
        return member_id in members or len(members) < size_max
    return True


def _supports(group: ClassicGroup, join: Join) -> bool:
    if group.state is ClassicGroupState.EMPTY:
        return join.protocol_type != "" and bool(join.protocols)
    return group.supports_protocols(join.protocol_type, (name for name, _ in join.protocols))


def _join_new(group: ClassicGroup, join: Join, now_ms: int) -> None:
    new_id = join.new_member_id
    if join.instance_id is not None:
        old_id = group.static_members.get(join.instance_id)
        if old_id is None:
            _add_and_rebalance(group, join, new_id, now_ms)
        else:
            _replace_static(group, join, join.instance_id, old_id, now_ms)
    elif join.member_id_required:
        timer = group.pending_join_members[new_id] = LazyTimer(new_id)
        group.session_timers.arm(timer, now_ms + join.session_timeout_ms)
        _refuse_join(group, join, ErrorCode.MEMBER_ID_REQUIRED, new_id)
    else:
        _add_and_rebalance(group, join, new_id, now_ms)


def _join_known(group: ClassicGroup, join: Join, member: Member, now_ms: int) -> None:
    answer = ANSWERS[group.state][RequestKind.JOIN]
    leads = group.leader == member.member_id
    if isinstance(answer, ErrorCode):
        _refuse_join(group, join, answer)
    elif (
        answer is RequestAction.PARK
        or (answer is RequestAction.UNLESS_LEADER and leads)
        or member.protocols != join.protocols
    ):
        _update_and_rebalance(group, join, member, now_ms)
    else:
        group.effects.append(Reply(join.callback, group.join_result(member)))


def _update_and_rebalance(group: ClassicGroup, join: Join, member: Member, now_ms: int) -> None:
    _update(group, join, member)
    rebalance_or_complete(group, f"member {member.member_id} joins again: {join.reason}", now_ms)


def _add_and_rebalance(group: ClassicGroup, join: Join, member_id: str, now_ms: int) -> None:
    group.remove_pending_member(member_id)
    member = Member(
        member_id,
        join.instance_id,
        join.client_id,
        join.client_host,
        join.rebalance_timeout_ms,
        join.session_timeout_ms,
        join.protocols,
    )
    member.is_new = True
    if (
        group.state is ClassicGroupState.PREPARING
        and group.previous_state is ClassicGroupState.EMPTY
    ):
        group.new_member_added = True
    group.add_member(member, join.protocol_type)
    group.park_join(member, join.callback)
    group.session_timers.arm(member, now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(group, f"member {member_id} joins: {join.reason}", now_ms)


def _update(group: ClassicGroup, join: Join, member: Member) -> None:
    group.update_member(member, join.protocols, join.rebalance_timeout_ms, join.session_timeout_ms)
    older = group.park_join(member, join.callback)
    if older is not None:
        group.effects.append(
            Reply(
                older, JoinResult(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
            )
        )


def _replace_static(
    group: ClassicGroup, join: Join, instance_id: str, old_id: str, now_ms: int
) -> None:
    """A static member joins without an id: it replaces the member of its instance (KIP-345)."""
    old = group.members[old_id]
    old_leader = group.leader or NO_LEADER
    group.fail_waiting_requests(old, ErrorCode.FENCED_INSTANCE_ID, old_id)
    group.session_timers.cancel(old)
    replaced = StaticReplacement(
        callback=join.callback,
        instance_id=instance_id,
        old_member_id=old_id,
        new_member_id=join.new_member_id,
        old_leader=old_leader,
        old_protocols=old.protocols,
        old_rebalance_timeout_ms=old.rebalance_timeout_ms,
        old_session_timeout_ms=old.session_timeout_ms,
        skip_assignment=join.skip_assignment,
    )
    member = group.replace_static_member(old, join.new_member_id)
    if group.pending_sync_members.pop(old_id, "absent") is None:
        group.pending_sync_members[member.member_id] = None
    group.renew_session(member, now_ms)
    _update(group, join, member)
    if group.state is ClassicGroupState.PREPARING:
        maybe_complete_join(group, now_ms)
    elif group.state is ClassicGroupState.STABLE and group.select_protocol() == group.protocol_name:
        # The protocol is the same: no rebalance, and the answer is sent once the id is stored.
        group.effects.append(Persist(image=group.image(), replaced=replaced))
    else:
        reason = f"static member {instance_id} is back as {member.member_id}: {join.reason}"
        prepare_rebalance(group, reason, now_ms)


def _on_persisted(group: ClassicGroup, persisted: Persisted, now_ms: int) -> None:
    replaced = persisted.persist.replaced
    if replaced is None:
        on_assignment_persisted(group, persisted, now_ms)
    else:
        _on_static_persisted(group, replaced, persisted.error, now_ms)


def _on_static_persisted(
    group: ClassicGroup, replaced: StaticReplacement, error: ErrorCode, now_ms: int
) -> None:
    member = group.members.get(replaced.new_member_id)
    if (
        member is None
        or member.join_callback is not replaced.callback
        or group.state is not ClassicGroupState.STABLE
    ):
        return  # it has left, joined again, or waits for a rebalance
    callback = group.take_join_callback(member)
    if error is not NONE:
        group.update_member(
            member,
            replaced.old_protocols,
            replaced.old_rebalance_timeout_ms,
            replaced.old_session_timeout_ms,
        )
        group.session_timers.cancel(member)
        group.renew_session(group.replace_static_member(member, replaced.old_member_id), now_ms)
        group.effects.append(Reply(callback, JoinResult(error=error, member_id=NO_MEMBER_ID)))
        return
    group.renew_session(member, now_ms)  # its session may have expired while it waited
    if replaced.skip_assignment:
        leads = group.leader == member.member_id
        group.effects.append(Reply(callback, group.join_result(member, skip_assignment=leads)))
    else:
        # Before v9 the leader field has the old id, so that a returning leader acts as a
        # follower: the group is Stable and would not accept a new assignment.
        group.effects.append(Reply(callback, group.join_result(member, leader=replaced.old_leader)))


def _refuse_join(
    group: ClassicGroup, join: Join, error: ErrorCode, member_id: str | None = None
) -> None:
    answered = join.member_id if member_id is None else member_id
    group.effects.append(Reply(join.callback, JoinResult(error=error, member_id=answered)))


# ------------------------------------------------------------------------- Heartbeat, Leave


def _on_heartbeat(group: ClassicGroup, heartbeat: Heartbeat, now_ms: int) -> None:
    error = group.heartbeat(
        heartbeat.member_id, heartbeat.instance_id, heartbeat.generation, now_ms
    )
    group.effects.append(Reply(heartbeat.callback, HeartbeatResult(error)))


def _on_leave(group: ClassicGroup, leave: Leave, now_ms: int) -> None:
    if group.state is ClassicGroupState.DEAD:
        group.effects.append(
            Reply(leave.callback, LeaveResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        )
        return
    left: list[LeftMember] = []
    for leaver in leave.members:
        error = _leave(group, leaver.member_id, leaver.instance_id)
        left.append(LeftMember(leaver.member_id, leaver.instance_id, error))
    group.effects.append(Reply(leave.callback, LeaveResult(NONE, tuple(left))))
    gone = [line.member_id for line in left if line.error is NONE]
    if gone and group.state is not ClassicGroupState.EMPTY:
        rebalance_or_complete(group, f"members left: {', '.join(gone)}", now_ms)


def _leave(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    if member_id == NO_MEMBER_ID:
        holder = None if instance_id is None else group.static_members.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        group.remove_member(group.members[holder])
        return NONE
    if group.remove_pending_member(member_id):
        return NONE
    error = group.validate_member(member_id, instance_id)
    if error is NONE:
        group.remove_member(group.members[member_id])
    return error


# ------------------------------------------------------------------------- loading, unloading


def _on_loaded(group: ClassicGroup, loaded: Loaded, now_ms: int) -> None:
    for member in group.members.values():
        group.renew_session(member, now_ms)
    size = len(group.members)
    if size > group.settings.size_max:
        # The limit was lowered: a rebalance lets members commit before some of them are
        # refused.
        prepare_rebalance(group, f"{size} members were loaded, more than group.max.size", now_ms)
    elif loaded.rebalance is not None:
        prepare_rebalance(group, loaded.rebalance, now_ms)


def _on_rebalance(group: ClassicGroup, rebalance: Rebalance, now_ms: int) -> None:
    if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING):
        prepare_rebalance(group, rebalance.reason, now_ms)


def _on_end_session(group: ClassicGroup, end: EndSession, now_ms: int) -> None:
    group.remove_member(group.members[end.member_id])
    rebalance_or_complete(group, f"session of {end.member_id} was ended", now_ms)


def _on_unload(group: ClassicGroup, unload: Unload, now_ms: int) -> None:
    for member in group.members.values():
        group.fail_waiting_requests(member, unload.error, member.member_id)
    _to_dead(group, "the coordinator has moved", now_ms)


def _on_delete(group: ClassicGroup, _: Delete, now_ms: int) -> None:
    assert group.state is ClassicGroupState.EMPTY
    _to_dead(group, "deleted", now_ms)


def _to_dead(group: ClassicGroup, reason: str, now_ms: int) -> None:
    group.session_timers = LazyTimerHeap()
    group.join_deadline_ms = group.sync_deadline_ms = None
    if group.state is not ClassicGroupState.DEAD:
        group.transition_to(Trigger.REMOVED, reason, now_ms)


_HANDLERS: dict[type, Callable[[ClassicGroup, Any, int], None]] = {
    Join: _on_join,
    Sync: on_sync,
    Heartbeat: _on_heartbeat,
    Leave: _on_leave,
    Persisted: _on_persisted,
    Tick: on_tick,
    Loaded: _on_loaded,
    Rebalance: _on_rebalance,
    EndSession: _on_end_session,
    Unload: _on_unload,
    Delete: _on_delete,
}
