"""A consumer group of the new protocol: `states` has the theory.

`handle(event, now_ms)` runs to completion and returns what is to be done about it; `deadline_ms()`
says by when a `Tick` is due. The group draws no ids, reads no clock and writes nothing: what it
wants stored is an effect, and only what has been stored changes it. Whoever runs a group must feed
the outcome of a Store back before anything else.

Four timers run for a member: its session, re-armed by each heartbeat; a rebalance timer while it
has partitions to give up; and, for members of the classic protocol, one until it joins again and
one until it fetches its assignment. Whoever lets one end is out.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from mockbroker.core.groups.consumer.base import ConsumerSettings
from mockbroker.core.groups.consumer.classic import ConsumerGroupClassic
from mockbroker.core.groups.consumer.events import (
    Change,
    ConsumerHeartbeat,
    ConsumerLeave,
    Effect,
    RegexesResolved,
    SetTimer,
    Store,
    Stored,
    TimerKind,
)
from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.records import record_of
from mockbroker.core.groups.consumer.states import (
    DELETE_ANSWERS,
    JOIN_EPOCH,
    MemberState,
)
from mockbroker.core.groups.consumer.steps import NONE, Draft, Refused
from mockbroker.core.groups.consumer.timers import MemberTimer
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
from mockbroker.core.groups.records import KeyValue
from mockbroker_protocol import ErrorCode

__all__ = ["ConsumerGroup", "ConsumerSettings"]

RETRY_MS = 500  # CoordinatorRuntime's back-off after a timer's write has failed
MEMBER_EPOCH_SINCE = 9  # OffsetCommit


class ConsumerGroup(ConsumerGroupClassic):
    """One group. Public attributes are for reading."""

    __slots__ = ()

    def handle(self, event: object, now_ms: int) -> list[Effect]:
        """Take in one event; returns what is to be done, in order."""
        assert not self._out
        self._timers.now_ms = now_ms
        _HANDLERS[type(event)](self, event, now_ms)
        out, self._out = self._out, []
        return out

    def deadline_ms(self) -> int | None:
        """When the next Tick is due; it may turn out that nothing was."""
        return self._timers.next_ms()

    # ---------------------------------------------------------------------- heartbeat of a member

    def _on_consumer_heartbeat(self, heartbeat: ConsumerHeartbeat, now_ms: int) -> None:
        try:
            self._check_group_size(heartbeat.member_id)
            draft = self._draft(heartbeat)
            self._update_member(draft, now_ms)
            self._update_target(draft, now_ms)
            self._reconcile(draft, heartbeat.reported, now_ms)
        except Refused as refused:
            self._forget_version()
            result = ConsumerResult(error=refused.error, message=refused.message)
            self._out.append(Reply(heartbeat.slot, result))
            return
        session_ms = now_ms + self.settings.session_timeout_ms
        draft.timers.append(SetTimer(TimerKind.SESSION, heartbeat.member_id, session_ms))
        self._submit(draft, Reply(heartbeat.slot, self._heartbeat_result(heartbeat, draft)))
        self._request_regex_resolution(draft)

    def _draft(self, heartbeat: ConsumerHeartbeat) -> Draft:
        joins = heartbeat.epoch == JOIN_EPOCH
        changes: list[Change] = []
        if heartbeat.instance_id is None:
            before = self._dynamic(heartbeat.member_id, create=joins)
            self._check_epoch(before, heartbeat.epoch, heartbeat.reported)
        elif joins:
            before = self._joining_static(
                heartbeat.member_id, heartbeat.instance_id, changes, classic=False
            )
        else:
            before = self._known_static(heartbeat.member_id, heartbeat.instance_id)
            self._check_epoch(before, heartbeat.epoch, heartbeat.reported)
        return Draft(before, _updated(before, heartbeat), changes, [], self.epoch)

    def _heartbeat_result(self, heartbeat: ConsumerHeartbeat, draft: Draft) -> ConsumerResult:
        """The answer; it has the assignment only if the member asks for it or if it changed."""
        after = draft.after
        full = (
            heartbeat.rebalance_timeout_ms is not None
            and (heartbeat.topic_names is not None or heartbeat.regex is not None)
            and heartbeat.reported is not None
        )
        shown = None
        if heartbeat.epoch == JOIN_EPOCH or full or after.assigned != draft.before.assigned:
            shown = {topic_id: tuple(sorted(ps)) for topic_id, ps in after.assigned.items()}
        return ConsumerResult(
            member_id=after.member_id,
            epoch=after.epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms,
            assignment=shown,
        )

    def _on_stored(self, stored: Stored, now_ms: int) -> None:
        store = stored.store
        if stored.error is NONE:
            self.apply(store.changes)
            for timer in store.timers:
                self._timers.set(timer)
            if store.answer is not None:
                self._out.append(store.answer)
            return
        self._forget_version()
        if store.answer is not None:
            self._out.append(Reply(store.answer.slot, _failed(store.answer.result, stored.error)))
        elif store.retry is not None:
            retry = msgspec.structs.replace(store.retry, deadline_ms=now_ms + RETRY_MS)
            self._timers.set(retry)

    # --------------------------------------------------------------------------------- the timers

    def spare(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """The clock is about to be moved on by `by_ms`: wait that much longer for the members that
        are connected, also in what begins before it has arrived.
        """
        self._timers.spare(connected, by_ms, now_ms)

    def _on_tick(self, _: Tick, now_ms: int) -> None:
        """One timer at a time: what the first one changes may concern the next."""
        while (timer := self._timers.pop_ended(now_ms)) is not None:
            if self._counts(timer):
                retry = SetTimer(timer.kind, timer.member_id, now_ms, timer.member_epoch)
                self._fence(frozenset({timer.member_id}), None, retry)
                return

    def _counts(self, timer: MemberTimer) -> bool:
        member = self.members.get(timer.member_id)
        return member is not None and timer.member_epoch in (None, member.epoch)

    def start_upgraded(self, changes: Iterable[Change], now_ms: int) -> None:
        """Begin with the members of a classic group, whose sessions go on."""
        self.apply(changes)
        for member in self.members.values():
            assert member.classic is not None
            self._renew_classic(member, member.classic, now_ms)

    def _on_loaded(self, _: Loaded, now_ms: int) -> None:
        for member in self.members.values():
            session_ms = now_ms + self.settings.session_timeout_ms
            self._timers.set(SetTimer(TimerKind.SESSION, member.member_id, session_ms))
            if member.state is MemberState.UNREVOKED:
                due_ms = now_ms + member.rebalance_timeout_ms
                self._timers.set(
                    SetTimer(TimerKind.REBALANCE, member.member_id, due_ms, member.epoch)
                )

    # -------------------------------------------------------------------------- the whole group

    def _on_unload(self, _: Unload, __: int) -> None:
        self.dead = True  # nobody waits for anything here

    def _on_delete(self, _: Delete, __: int) -> None:
        assert self.is_empty()
        self._out.append(Store(changes=self.tombstones()))

    def check_delete(self) -> ErrorCode:
        return DELETE_ANSWERS[self.state]

    def check_offset_delete(self) -> ErrorCode:
        """Only what members subscribe to stays."""
        return NONE

    def tombstone_records(self) -> list[KeyValue]:
        return [record_of(self.group_id, change) for change in self.tombstones()]

    # ------------------------------------------------------------------------------------ offsets

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        now_ms: int,  # noqa: ARG002 (a commit renews no session here)
        *,
        transactional: bool = False,
        version: int = MEMBER_EPOCH_SINCE,
    ) -> ErrorCode:
        """Whether a member may commit offsets. One with an older epoch may, for partitions that it
        has owned since before: ask `check_partition` for each.
        """
        if epoch < 0 and not self.members:
            return NONE
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and member.classic is None and version < MEMBER_EPOCH_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch > member.epoch:
            return self._stale(member, transactional=transactional)
        return NONE

    def check_partition(
        self,
        member_id: str,
        epoch: int,
        topic_id: bytes,
        partition: int,
        *,
        transactional: bool = False,
    ) -> ErrorCode:
        """Whether a member may commit for one partition (KAFKA-19779)."""
        member = self.members.get(member_id)
        if member is None or epoch == member.epoch:
            return NONE
        owned_since = member.assignment_epoch_of(topic_id, partition)
        if owned_since is None or epoch < owned_since:
            return self._stale(member, transactional=transactional)
        return NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether OffsetFetch may be answered: to nobody in particular, or to a member on time."""
        if member_id is None and epoch < 0:
            return NONE
        if member_id is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka stumbles over the null
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else self._stale(member)

    @staticmethod
    def _stale(member: ConsumerMember, *, transactional: bool = False) -> ErrorCode:
        classic = transactional or member.classic is not None
        return ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH


def _updated(member: ConsumerMember, heartbeat: ConsumerHeartbeat) -> ConsumerMember:
    """The member as the heartbeat describes it; the same object if that is how it is already."""
    new: dict[str, object] = {
        "instance_id": heartbeat.instance_id,
        "rack_id": heartbeat.rack_id,
        "rebalance_timeout_ms": heartbeat.rebalance_timeout_ms,
        "topic_names": heartbeat.topic_names,
        "regex": heartbeat.regex,
        "assignor": heartbeat.assignor,
        "client_id": heartbeat.client_id,
        "client_host": heartbeat.client_host,
    }
    changed = {
        name: value
        for name, value in new.items()
        if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        changed["classic"] = None
    return msgspec.structs.replace(member, **changed) if changed else member


def _failed(result: Result, error: ErrorCode) -> Result:
    """The answer in place of `result` when storing has failed."""
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
    ConsumerHeartbeat: ConsumerGroup._on_consumer_heartbeat,
    ConsumerLeave: ConsumerGroup._on_consumer_leave,
    RegexesResolved: ConsumerGroup._on_regexes_resolved,
    Stored: ConsumerGroup._on_stored,
    Join: ConsumerGroup._on_join,
    Sync: ConsumerGroup._on_sync,
    Heartbeat: ConsumerGroup._on_heartbeat,
    Leave: ConsumerGroup._on_leave,
    Tick: ConsumerGroup._on_tick,
    Loaded: ConsumerGroup._on_loaded,
    Unload: ConsumerGroup._on_unload,
    Delete: ConsumerGroup._on_delete,
}
