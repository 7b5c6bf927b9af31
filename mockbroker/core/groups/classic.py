"""A classic group: the interpreter of the tables in `groups.states`.

`handle(event, now_ms)` runs to completion and returns the effects; `deadline_ms()` returns the time
of the next `Tick`. The group draws no ids, reads no clock and writes nothing: a record to store is
an effect, and its outcome comes back as an event. A group has three kinds of timers:

- the join timer: the initial delay of a group that was Empty, else the slowest member's rebalance
  timeout; a dynamic member that has not joined by then is removed (a static member stays);
- the pending-sync timer, of the same length, from the end of the join phase: a member that has not
  sent SyncGroup by then is removed, and the next rebalance begins;
- a session for each member, re-armed by Heartbeat, OffsetCommit and the end of each wait. It does
  not expire while the member's JoinGroup or SyncGroup waits, except in its first join, which is
  limited to five minutes. Ids given out with MEMBER_ID_REQUIRED have one as well.

A request that replaces a waiting one of the same member, or removes its member, has the older one
answered too. (Kafka drops the older one without an answer; its connection is closed.)

Source: GroupMetadataManager, classicGroup* and what it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockbroker.core.groups.base import NONE, ClassicGroupSettings, join_error
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
from mockbroker.core.groups.rebalance import ClassicGroupRebalance
from mockbroker.core.groups.states import ANSWERS, RequestAction, RequestKind, State, Trigger
from mockbroker_protocol import ErrorCode

__all__ = ["ClassicGroup", "ClassicGroupSettings"]

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000  # classicGroupNewMemberJoinTimeoutMs, not configurable


class ClassicGroup(ClassicGroupRebalance):
    """One group. Public attributes are for reading."""

    __slots__ = ()

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns the effects in order."""
        assert not self._out
        _HANDLERS[type(event)](self, event, now_ms)
        out, self._out = self._out, []
        return out

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, which may find no timer expired; None without timers."""
        earliest = self._session_timers.next_ms()
        for deadline_ms in (self._join_deadline_ms, self._sync_deadline_ms):
            if deadline_ms is not None and (earliest is None or deadline_ms < earliest):
                earliest = deadline_ms
        return earliest

    # ------------------------------------------------------------------------------------- Join

    def _on_join(self, join: Join, now_ms: int) -> None:
        if not self._accepts_joining_member(join.member_id):
            member = self.roster.members.get(join.member_id)
            if member is not None:
                self._remove_member(member)
            self._remove_pending_member(join.member_id)
            self._refuse_join(join, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
        elif self.state is State.DEAD:
            self._refuse_join(join, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not self._supports(join):
            self._refuse_join(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif join.member_id == NO_MEMBER_ID:
            self._join_new(join, now_ms)
        elif join.member_id in self.roster.pending:
            if join.instance_id is not None:
                # Kafka runs into an IllegalStateException here: ids are only given to dynamic
                # members.
                self._refuse_join(join, ErrorCode.UNKNOWN_SERVER_ERROR, NO_MEMBER_ID)
            else:
                self._add_and_rebalance(join, join.member_id, now_ms)
        else:
            error = self.validate_member(join.member_id, join.instance_id)
            if error is not NONE:
                self._refuse_join(join, error)
            else:
                self._join_known(join, self.roster.members[join.member_id], now_ms)

    def _accepts_joining_member(self, member_id: str) -> bool:
        """group.max.size: counts waiting JoinGroups in PreparingRebalance, else members."""
        members = self.roster.members
        size_max = self.settings.size_max
        if self.state is State.PREPARING:
            member = members.get(member_id)
            waits = member is not None and member.join_slot is not None
            return waits or self.roster.awaiting_join < size_max
        if self.state in (State.COMPLETING, State.STABLE):
            return member_id in members or len(members) < size_max
        return True

    def _supports(self, join: Join) -> bool:
        if self.state is State.EMPTY:
            return join.protocol_type != "" and bool(join.protocols)
        return self.roster.supports(join.protocol_type, (name for name, _ in join.protocols))

    def _join_new(self, join: Join, now_ms: int) -> None:
        new_id = join.new_member_id
        if join.instance_id is not None:
            old_id = self.roster.static.get(join.instance_id)
            if old_id is None:
                self._add_and_rebalance(join, new_id, now_ms)
            else:
                self._replace_static(join, join.instance_id, old_id, now_ms)
        elif join.member_id_required:
            timer = self.roster.pending[new_id] = LazyTimer(new_id)
            self._session_timers.arm(timer, now_ms + join.session_timeout_ms)
            self._refuse_join(join, ErrorCode.MEMBER_ID_REQUIRED, new_id)
        else:
            self._add_and_rebalance(join, new_id, now_ms)

    def _join_known(self, join: Join, member: Member, now_ms: int) -> None:
        verdict = ANSWERS[self.state][RequestKind.JOIN]
        leads = self.roster.leader == member.member_id
        if isinstance(verdict, ErrorCode):
            self._refuse_join(join, verdict)
        elif (
            verdict is RequestAction.PARK
            or (verdict is RequestAction.UNLESS_LEADER and leads)
            or member.protocols != join.protocols
        ):
            self._update_and_rebalance(join, member, now_ms)
        else:
            self._out.append(Reply(join.slot, self._joined(member)))

    def _update_and_rebalance(self, join: Join, member: Member, now_ms: int) -> None:
        self._update(join, member)
        self._rebalance_or_complete(f"member {member.member_id} joins again: {join.reason}", now_ms)

    def _add_and_rebalance(self, join: Join, member_id: str, now_ms: int) -> None:
        """A new member, or one whose id was given out before."""
        self._remove_pending_member(member_id)
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
        if self.state is State.PREPARING and self._previous_state is State.EMPTY:
            self._new_member_added = True
        self.roster.add(member, join.protocol_type)
        self.roster.park_join(member, join.slot)
        self._session_timers.arm(member, now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance_or_complete(f"member {member_id} joins: {join.reason}", now_ms)

    def _update(self, join: Join, member: Member) -> None:
        self.roster.update(
            member, join.protocols, join.rebalance_timeout_ms, join.session_timeout_ms
        )
        older = self.roster.park_join(member, join.slot)
        if older is not None:
            self._out.append(
                Reply(older, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            )

    def _replace_static(self, join: Join, instance_id: str, old_id: str, now_ms: int) -> None:
        """A static member joins without an id: it replaces the member of its instance (KIP-345)."""
        roster = self.roster
        old = roster.members[old_id]
        old_leader = roster.leader or NO_LEADER
        self._fail_waiting_requests(old, ErrorCode.FENCED_INSTANCE_ID, old_id)
        self._session_timers.cancel(old)
        replaced = StaticReplacement(
            slot=join.slot,
            instance_id=instance_id,
            old_member_id=old_id,
            new_member_id=join.new_member_id,
            old_leader=old_leader,
            old_protocols=old.protocols,
            old_rebalance_timeout_ms=old.rebalance_timeout_ms,
            old_session_timeout_ms=old.session_timeout_ms,
            skip_assignment=join.skip_assignment,
        )
        member = roster.replace_static(old, join.new_member_id)
        if self.pending_sync.pop(old_id, "absent") is None:
            self.pending_sync[member.member_id] = None
        self._renew(member, now_ms)
        self._update(join, member)
        if self.state is State.PREPARING:
            self._maybe_complete_join(now_ms)
        elif self.state is State.STABLE and roster.vote() == self.protocol_name:
            # Same protocol: no rebalance, and the answer follows once the new id is stored.
            self._out.append(Persist(image=self.image(), replaced=replaced))
        else:
            reason = f"static member {instance_id} is back as {member.member_id}: {join.reason}"
            self._prepare_rebalance(reason, now_ms)

    def _on_persisted(self, persisted: Persisted, now_ms: int) -> None:
        replaced = persisted.persist.replaced
        if replaced is None:
            self._on_assignment_persisted(persisted, now_ms)
        else:
            self._on_static_persisted(replaced, persisted.error, now_ms)

    def _on_static_persisted(
        self, replaced: StaticReplacement, error: ErrorCode, now_ms: int
    ) -> None:
        roster = self.roster
        member = roster.members.get(replaced.new_member_id)
        if (
            member is None
            or member.join_slot is not replaced.slot
            or self.state is not State.STABLE
        ):
            return  # it has left, joined again, or waits for a rebalance
        slot = roster.take_join(member)
        if error is not NONE:
            roster.update(
                member,
                replaced.old_protocols,
                replaced.old_rebalance_timeout_ms,
                replaced.old_session_timeout_ms,
            )
            self._session_timers.cancel(member)
            self._renew(roster.replace_static(member, replaced.old_member_id), now_ms)
            self._out.append(Reply(slot, join_error(error, NO_MEMBER_ID)))
            return
        self._renew(member, now_ms)  # its session may have expired while it waited
        if replaced.skip_assignment:
            leads = roster.leader == member.member_id
            self._out.append(Reply(slot, self._joined(member, skip_assignment=leads)))
        else:
            # Before v9 the leader field has the old id, so that a returning leader acts as a
            # follower: the group is Stable and would not accept a new assignment.
            self._out.append(Reply(slot, self._joined(member, leader=replaced.old_leader)))

    def _refuse_join(self, join: Join, error: ErrorCode, member_id: str | None = None) -> None:
        asked = join.member_id if member_id is None else member_id
        self._out.append(Reply(join.slot, join_error(error, asked)))

    # ------------------------------------------------------------------------- Heartbeat, Leave

    def _on_heartbeat(self, heartbeat: Heartbeat, now_ms: int) -> None:
        error = self.heartbeat(
            heartbeat.member_id, heartbeat.instance_id, heartbeat.generation, now_ms
        )
        self._out.append(Reply(heartbeat.slot, HeartbeatResult(error)))

    def _on_leave(self, leave: Leave, now_ms: int) -> None:
        if self.state is State.DEAD:
            self._out.append(Reply(leave.slot, LeaveResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
            return
        left: list[LeftMember] = []
        for leaver in leave.members:
            error = self._leave(leaver.member_id, leaver.instance_id)
            left.append(LeftMember(leaver.member_id, leaver.instance_id, error))
        self._out.append(Reply(leave.slot, LeaveResult(NONE, tuple(left))))
        gone = [line.member_id for line in left if line.error is NONE]
        if gone and self.state is not State.EMPTY:
            self._rebalance_or_complete(f"members left: {', '.join(gone)}", now_ms)

    def _leave(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if member_id == NO_MEMBER_ID:
            holder = None if instance_id is None else self.roster.static.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            self._remove_member(self.roster.members[holder])
            return NONE
        if self._remove_pending_member(member_id):
            return NONE
        error = self.validate_member(member_id, instance_id)
        if error is NONE:
            self._remove_member(self.roster.members[member_id])
        return error

    # ------------------------------------------------------------------------- loading, unloading

    def _on_loaded(self, loaded: Loaded, now_ms: int) -> None:
        for member in self.roster.members.values():
            self._renew(member, now_ms)
        size = len(self.roster.members)
        if size > self.settings.size_max:
            # The limit was lowered: a rebalance lets members commit before some of them are
            # refused.
            self._prepare_rebalance(f"{size} members were loaded, more than group.max.size", now_ms)
        elif loaded.rebalance is not None:
            self._prepare_rebalance(loaded.rebalance, now_ms)

    def _on_rebalance(self, rebalance: Rebalance, now_ms: int) -> None:
        if self.state in (State.STABLE, State.COMPLETING):
            self._prepare_rebalance(rebalance.reason, now_ms)

    def _on_end_session(self, end: EndSession, now_ms: int) -> None:
        self._remove_member(self.roster.members[end.member_id])
        self._rebalance_or_complete(f"session of {end.member_id} was ended", now_ms)

    def _on_unload(self, unload: Unload, now_ms: int) -> None:
        for member in self.roster.members.values():
            self._fail_waiting_requests(member, unload.error, member.member_id)
        self._to_dead("the coordinator has moved", now_ms)

    def _on_delete(self, _: Delete, now_ms: int) -> None:
        assert self.state is State.EMPTY
        self._to_dead("deleted", now_ms)

    def _to_dead(self, reason: str, now_ms: int) -> None:
        self._session_timers = LazyTimerHeap()
        self._join_deadline_ms = self._sync_deadline_ms = None
        if self.state is not State.DEAD:
            self._move(Trigger.REMOVED, reason, now_ms)


_HANDLERS: dict[type, Callable[[ClassicGroup, Any, int], None]] = {
    Join: ClassicGroup._on_join,
    Sync: ClassicGroup._on_sync,
    Heartbeat: ClassicGroup._on_heartbeat,
    Leave: ClassicGroup._on_leave,
    Persisted: ClassicGroup._on_persisted,
    Tick: ClassicGroup._on_tick,
    Loaded: ClassicGroup._on_loaded,
    Rebalance: ClassicGroup._on_rebalance,
    EndSession: ClassicGroup._on_end_session,
    Unload: ClassicGroup._on_unload,
    Delete: ClassicGroup._on_delete,
}
