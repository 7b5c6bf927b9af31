"""The rebalance of a classic group: join phase, sync phase, and the timers that end them."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.groups.classic import NONE, ClassicGroup
from mockbroker.core.groups.events import Persist, Persisted, Reply, Sync, SyncResult, Tick
from mockbroker.core.groups.lazy_timers import LazyTimer
from mockbroker.core.groups.members import Member
from mockbroker.core.groups.states import (
    ANSWERS,
    TRANSITIONS,
    ClassicGroupState,
    RequestAction,
    RequestKind,
    Trigger,
)
from mockbroker_protocol import ErrorCode

# --------------------------------------------------------------------------- the join phase


def rebalance_or_complete(group: ClassicGroup, reason: str, now_ms: int) -> None:
    if Trigger.REBALANCE in TRANSITIONS[group.state]:
        prepare_rebalance(group, reason, now_ms)
    else:
        maybe_complete_join(group, now_ms)


def prepare_rebalance(group: ClassicGroup, reason: str, now_ms: int) -> None:
    if group.state is ClassicGroupState.COMPLETING:
        _propagate_assignment(group, {}, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.pending_sync_members.clear()
    group.sync_deadline_ms = None
    initial = group.state is ClassicGroupState.EMPTY
    group.transition_to(Trigger.REBALANCE, reason, now_ms)
    timeout_ms = group.rebalance_timeout_ms()
    if initial:
        delay_ms = group.settings.initial_rebalance_delay_ms
        group.initial_remaining_ms = (delay_ms, max(timeout_ms - delay_ms, 0))
        group.join_deadline_ms = now_ms + delay_ms
        if delay_ms == 0:
            # A timer of 0 ms would delay the first member by a turn of the event loop.
            _on_join_deadline(group, now_ms)
    elif group.has_all_members_joined():
        _complete_join(group, now_ms)
    else:
        group.initial_remaining_ms = None
        group.join_deadline_ms = group.timer_start_ms(now_ms) + timeout_ms


def maybe_complete_join(group: ClassicGroup, now_ms: int) -> None:
    """An initial rebalance waits for its delay; others end once all members have joined."""
    if (
        group.state is ClassicGroupState.PREPARING
        and group.previous_state is not ClassicGroupState.EMPTY
        and group.has_all_members_joined()
    ):
        _complete_join(group, now_ms)


def _on_join_deadline(group: ClassicGroup, now_ms: int) -> None:
    if group.initial_remaining_ms is not None:
        delay_ms, remaining_ms = group.initial_remaining_ms
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            next_ms = min(group.settings.initial_rebalance_delay_ms, remaining_ms)
            group.initial_remaining_ms = (next_ms, max(remaining_ms - delay_ms, 0))
            group.join_deadline_ms = now_ms + next_ms
            return
    _complete_join(group, now_ms)


def _complete_join(group: ClassicGroup, now_ms: int) -> None:
    group.join_deadline_ms = None
    group.initial_remaining_ms = None
    for member in list(group.members.values()):
        if member.join_callback is None and member.instance_id is None:
            group.remove_member(member)
    if not group.elect_joined_leader() and group.members:
        # All remaining members are static and none has joined: wait for another timeout.
        group.join_deadline_ms = group.timer_start_ms(now_ms) + max(group.rebalance_timeout_ms(), 1)
        return
    group.generation += 1
    group.pending_sync_members.clear()
    if not group.members:
        group.protocol_name = None
        group.subscriptions = ()
        group.transition_to(Trigger.EMPTIED, "nobody is left", now_ms)
        group.effects.append(Persist(image=group.image()))
        return
    group.protocol_name = protocol = group.select_protocol()
    group.subscriptions = tuple(m.metadata(protocol) for m in group.members.values())
    group.transition_to(Trigger.JOINED, f"{len(group.members)} members", now_ms)
    for member in group.members.values():
        callback = group.take_join_callback(member)
        if callback is not None:
            group.effects.append(Reply(callback, group.join_result(member)))
        group.renew_session(member, now_ms)
        member.is_new = False
        group.pending_sync_members[member.member_id] = None
    group.sync_deadline_ms = group.timer_start_ms(now_ms) + group.rebalance_timeout_ms()


# --------------------------------------------------------------------------- the sync phase


def on_sync(group: ClassicGroup, sync: Sync, now_ms: int) -> None:
    error = _check_sync(group, sync)
    if error is not NONE:
        group.effects.append(Reply(sync.callback, SyncResult(error=error)))
        return
    member = group.members[sync.member_id]
    answer = ANSWERS[group.state][RequestKind.SYNC]
    if isinstance(answer, ErrorCode):
        group.effects.append(Reply(sync.callback, SyncResult(error=answer)))
        return
    group.pending_sync_members.pop(sync.member_id, None)
    if not group.pending_sync_members:
        group.sync_deadline_ms = None
    if answer is RequestAction.ASSIGNMENT:
        group.renew_session(member, now_ms)
        group.effects.append(Reply(sync.callback, group.sync_result(member)))
        return
    older, member.sync_callback = member.sync_callback, sync.callback
    if older is not None:
        group.effects.append(Reply(older, SyncResult(error=ErrorCode.REBALANCE_IN_PROGRESS)))
    if group.leader == sync.member_id:
        image = group.image(sync.assignments)
        group.effects.append(Persist(image=image, assignments=sync.assignments))


def _check_sync(group: ClassicGroup, sync: Sync) -> ErrorCode:
    if group.state in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD):
        answer = ANSWERS[group.state][RequestKind.SYNC]
        assert isinstance(answer, ErrorCode)
        return answer
    error = group.validate_member(sync.member_id, sync.instance_id)
    if error is not NONE:
        return error
    if sync.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(sync.protocol_type, group.protocol_type) or _differs(
        sync.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return NONE


def on_assignment_persisted(group: ClassicGroup, persisted: Persisted, now_ms: int) -> None:
    persist = persisted.persist
    current = (
        persist.image.generation == group.generation and group.state is ClassicGroupState.COMPLETING
    )
    if persist.assignments is None or not current:
        return
    if persisted.error is not NONE:
        _propagate_assignment(group, {}, persisted.error, now_ms)
        prepare_rebalance(
            group, f"the assignment could not be stored: {persisted.error.name}", now_ms
        )
        return
    _propagate_assignment(group, persist.assignments, NONE, now_ms)
    group.transition_to(Trigger.ASSIGNED, "the leader's assignment is stored", now_ms)


def _propagate_assignment(
    group: ClassicGroup, assignments: Mapping[str, bytes], error: ErrorCode, now_ms: int
) -> None:
    """Set each member's assignment and answer waiting SyncGroups, with `error` if there is one."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        callback, member.sync_callback = member.sync_callback, None
        if callback is not None:
            result = group.sync_result(member) if error is NONE else SyncResult(error=error)
            group.effects.append(Reply(callback, result))
            group.renew_session(member, now_ms)


# ------------------------------------------------------------------------------- the timers


def on_tick(group: ClassicGroup, _: Tick, now_ms: int) -> None:
    while (timer := group.session_timers.pop_expired(now_ms)) is not None:
        _on_session_expired(group, timer, now_ms)
    if group.join_deadline_ms is not None and group.join_deadline_ms <= now_ms:
        _on_join_deadline(group, now_ms)
    if group.sync_deadline_ms is not None and group.sync_deadline_ms <= now_ms:
        _on_sync_deadline(group, now_ms)


def _on_session_expired(group: ClassicGroup, timer: LazyTimer, now_ms: int) -> None:
    if not isinstance(timer, Member):
        group.remove_pending_member(timer.member_id)
    elif timer.is_new or (timer.join_callback is None and timer.sync_callback is None):
        group.remove_member(timer)
        if group.state is not ClassicGroupState.PREPARING:
            prepare_rebalance(group, f"session of {timer.member_id} has ended", now_ms)
            return
    else:
        return  # a request of the member waits; the answer renews its session
    # Kafka completes even an initial rebalance here, ahead of its delay.
    if group.state is ClassicGroupState.PREPARING and group.has_all_members_joined():
        _complete_join(group, now_ms)


def _on_sync_deadline(group: ClassicGroup, now_ms: int) -> None:
    group.sync_deadline_ms = None
    pending = list(group.pending_sync_members)
    if not pending:
        return
    for member_id in pending:
        group.remove_member(group.members[member_id])
    prepare_rebalance(group, f"no SyncGroup from {', '.join(pending)}", now_ms)


def _differs(requested: str | None, actual: str | None) -> bool:
    """Whether both are given and differ."""
    return requested is not None and actual is not None and requested != actual
