"""The rounds of a classic group: join phase, sync phase, and the timers that end them."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.groups.base import NONE, ClassicGroupBase
from mockbroker.core.groups.events import Persist, Persisted, Reply, Sync, SyncResult, Tick
from mockbroker.core.groups.lazy_timers import LazyTimer
from mockbroker.core.groups.members import Member
from mockbroker.core.groups.states import (
    ANSWERS,
    TRANSITIONS,
    RequestAction,
    RequestKind,
    State,
    Trigger,
)
from mockbroker_protocol import ErrorCode


class ClassicGroupRebalance(ClassicGroupBase):
    """How a generation comes about."""

    __slots__ = ()

    # --------------------------------------------------------------------------- the join phase

    def _rebalance_or_complete(self, reason: str, now_ms: int) -> None:
        if Trigger.REBALANCE in TRANSITIONS[self.state]:
            self._prepare_rebalance(reason, now_ms)
        else:
            self._maybe_complete_join(now_ms)

    def _prepare_rebalance(self, reason: str, now_ms: int) -> None:
        if self.state is State.COMPLETING:
            self._propagate_assignment({}, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
        self.pending_sync.clear()
        self._sync_deadline_ms = None
        initial = self.state is State.EMPTY
        self._move(Trigger.REBALANCE, reason, now_ms)
        timeout_ms = self.roster.rebalance_timeout_ms()
        if initial:
            delay_ms = self.settings.initial_rebalance_delay_ms
            self._initial_remaining_ms = (delay_ms, max(timeout_ms - delay_ms, 0))
            self._join_deadline_ms = now_ms + delay_ms
            if delay_ms == 0:
                # A timer of no length would only cost the first member a turn of the event loop.
                self._on_join_deadline(now_ms)
        elif self.roster.all_joined():
            self._complete_join(now_ms)
        else:
            self._initial_remaining_ms = None
            self._join_deadline_ms = self._timer_start_ms(now_ms) + timeout_ms

    def _maybe_complete_join(self, now_ms: int) -> None:
        """An initial rebalance waits for its delay; others end once everybody is there."""
        if (
            self.state is State.PREPARING
            and self._previous_state is not State.EMPTY
            and self.roster.all_joined()
        ):
            self._complete_join(now_ms)

    def _on_join_deadline(self, now_ms: int) -> None:
        if self._initial_remaining_ms is not None:
            delay_ms, remaining_ms = self._initial_remaining_ms
            if self._new_member_added and remaining_ms:
                self._new_member_added = False
                next_ms = min(self.settings.initial_rebalance_delay_ms, remaining_ms)
                self._initial_remaining_ms = (next_ms, max(remaining_ms - delay_ms, 0))
                self._join_deadline_ms = now_ms + next_ms
                return
        self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        self._join_deadline_ms = None
        self._initial_remaining_ms = None
        roster = self.roster
        for member in list(roster.members.values()):
            if member.join_slot is None and member.instance_id is None:
                self._remove_member(member)
        if not roster.elect_joined_leader() and roster.members:
            # Only static members are left and none of them is here: wait once more.
            self._join_deadline_ms = self._timer_start_ms(now_ms) + max(
                roster.rebalance_timeout_ms(), 1
            )
            return
        self.generation += 1
        self.pending_sync.clear()
        if not roster.members:
            self.protocol_name = None
            self.subscriptions = ()
            self._move(Trigger.EMPTIED, "nobody is left", now_ms)
            self._out.append(Persist(image=self.image()))
            return
        self.protocol_name = protocol = roster.vote()
        self.subscriptions = tuple(m.metadata(protocol) for m in roster.members.values())
        self._move(Trigger.JOINED, f"{len(roster.members)} members", now_ms)
        for member in roster.members.values():
            slot = roster.take_join(member)
            if slot is not None:
                self._out.append(Reply(slot, self._joined(member)))
            self._renew(member, now_ms)
            member.is_new = False
            self.pending_sync[member.member_id] = None
        self._sync_deadline_ms = self._timer_start_ms(now_ms) + roster.rebalance_timeout_ms()

    # --------------------------------------------------------------------------- the sync phase

    def _on_sync(self, sync: Sync, now_ms: int) -> None:
        error = self._check_sync(sync)
        if error is not NONE:
            self._out.append(Reply(sync.slot, SyncResult(error=error)))
            return
        member = self.roster.members[sync.member_id]
        verdict = ANSWERS[self.state][RequestKind.SYNC]
        if isinstance(verdict, ErrorCode):
            self._out.append(Reply(sync.slot, SyncResult(error=verdict)))
            return
        self.pending_sync.pop(sync.member_id, None)
        if not self.pending_sync:
            self._sync_deadline_ms = None
        if verdict is RequestAction.ASSIGNMENT:
            self._renew(member, now_ms)
            self._out.append(Reply(sync.slot, self._synced(member)))
            return
        older, member.sync_slot = member.sync_slot, sync.slot
        if older is not None:
            self._out.append(Reply(older, SyncResult(error=ErrorCode.REBALANCE_IN_PROGRESS)))
        if self.roster.leader == sync.member_id:
            image = self.image(sync.assignments)
            self._out.append(Persist(image=image, assignments=sync.assignments))

    def _check_sync(self, sync: Sync) -> ErrorCode:
        if self.state in (State.EMPTY, State.DEAD):
            verdict = ANSWERS[self.state][RequestKind.SYNC]
            assert isinstance(verdict, ErrorCode)
            return verdict
        error = self.validate_member(sync.member_id, sync.instance_id)
        if error is not NONE:
            return error
        if sync.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if _differs(sync.protocol_type, self.roster.protocol_type) or _differs(
            sync.protocol_name, self.protocol_name
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return NONE

    def _on_assignment_persisted(self, persisted: Persisted, now_ms: int) -> None:
        persist = persisted.persist
        current = persist.image.generation == self.generation and self.state is State.COMPLETING
        if persist.assignments is None or not current:
            return
        if persisted.error is not NONE:
            self._propagate_assignment({}, persisted.error, now_ms)
            self._prepare_rebalance(
                f"the assignment could not be stored: {persisted.error.name}", now_ms
            )
            return
        self._propagate_assignment(persist.assignments, NONE, now_ms)
        self._move(Trigger.ASSIGNED, "the leader's assignment is stored", now_ms)

    def _propagate_assignment(
        self, assignments: Mapping[str, bytes], error: ErrorCode, now_ms: int
    ) -> None:
        """Give each member its part; answer those who wait for it, with `error` if there is one."""
        for member in self.roster.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            slot, member.sync_slot = member.sync_slot, None
            if slot is not None:
                result = self._synced(member) if error is NONE else SyncResult(error=error)
                self._out.append(Reply(slot, result))
                self._renew(member, now_ms)

    # ------------------------------------------------------------------------------- the timers

    def _on_tick(self, _: Tick, now_ms: int) -> None:
        while (timer := self._session_timers.pop_ended(now_ms)) is not None:
            self._on_session_end(timer, now_ms)
        if self._join_deadline_ms is not None and self._join_deadline_ms <= now_ms:
            self._on_join_deadline(now_ms)
        if self._sync_deadline_ms is not None and self._sync_deadline_ms <= now_ms:
            self._on_sync_deadline(now_ms)

    def _on_session_end(self, timer: LazyTimer, now_ms: int) -> None:
        if not isinstance(timer, Member):
            self._remove_pending_member(timer.member_id)
        elif timer.is_new or (timer.join_slot is None and timer.sync_slot is None):
            self._remove_member(timer)
            if self.state is not State.PREPARING:
                self._prepare_rebalance(f"session of {timer.member_id} has ended", now_ms)
                return
        else:
            return  # it waits for us, so it is alive; the answer will re-arm its session
        # Kafka completes even an initial rebalance here, ahead of its delay.
        if self.state is State.PREPARING and self.roster.all_joined():
            self._complete_join(now_ms)

    def _on_sync_deadline(self, now_ms: int) -> None:
        self._sync_deadline_ms = None
        silent = list(self.pending_sync)
        if not silent:
            return
        for member_id in silent:
            self._remove_member(self.roster.members[member_id])
        self._prepare_rebalance(f"no SyncGroup from {', '.join(silent)}", now_ms)


def _differs(asked: str | None, actual: str | None) -> bool:
    """What a request does not say, or the group does not have, differs from nothing."""
    return asked is not None and actual is not None and asked != actual
