"""Members of the classic protocol in a consumer group (KIP-848, online migration).

They send JoinGroup, SyncGroup and Heartbeat as ever, but nobody waits for anybody: JoinGroup is a
heartbeat with a subscription and is answered at once, the generation being the member's epoch and
the leader nobody, so that the client acts as a follower. SyncGroup fetches what is assigned to it.
Heartbeat tells it to join again whenever there is something to give up or to take.

Source: GroupMetadataManager, classicGroup...ToConsumerGroup.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.groups.consumer.events import (
    Change,
    Downgrade,
    SetTimer,
    TimerKind,
)
from mockbroker.core.groups.consumer.leaving import ConsumerGroupLeaving
from mockbroker.core.groups.consumer.members import (
    NO_EPOCH,
    ClassicMember,
    ConsumerMember,
    Reported,
)
from mockbroker.core.groups.consumer.protocol import (
    Subscription,
    assignment_blob,
    read_subscription,
)
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.consumer.steps import NONE, Draft, Refused
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    LeftMember,
    Reply,
    Sync,
    SyncResult,
)
from mockbroker.core.groups.group import CONSUMER_PROTOCOL_TYPE
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.exceptions import DecodeError


class ConsumerGroupClassic(ConsumerGroupLeaving):
    """What classic members ask."""

    __slots__ = ()

    # ------------------------------------------------------------------------------------- Join

    def _on_join(self, join: Join, now_ms: int) -> None:
        member_id = join.member_id or join.new_member_id
        try:
            self._check_migration()
            self._check_group_size(member_id)
            self._check_protocols(join)
            if join.member_id_required and not join.member_id and join.instance_id is None:
                result = JoinResult(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
                self._out.append(Reply(join.slot, result))
                return
            draft = self._draft_join(join, member_id, now_ms)
        except Refused as refused:
            self._forget_version()
            result = JoinResult(error=refused.error, member_id=NO_MEMBER_ID)
            self._out.append(Reply(join.slot, result))
            return
        if draft is not None:
            self._finish_join(join, draft, now_ms)

    def _check_migration(self) -> None:
        migration = self.settings.migration
        if not (migration.upgrade or migration.downgrade):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _check_protocols(self, join: Join) -> None:
        """Some protocol of the member's has to be one that all classic members support."""
        supported = any(
            self.classic_protocols.get(name, 0) == self.classic_count for name, _ in join.protocols
        )
        if join.protocol_type != CONSUMER_PROTOCOL_TYPE or not supported:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _draft_join(self, join: Join, member_id: str, now_ms: int) -> Draft | None:
        """The member that joins; None if its joining turns the group into a classic one."""
        changes: list[Change] = []
        if join.instance_id is None:
            before = self._dynamic(member_id, create=True)
        elif join.member_id:
            before = self._known_static(member_id, join.instance_id)
        else:
            before = self._joining_static(member_id, join.instance_id, changes, classic=True)
        subscription = _subscription(join)
        after = msgspec.structs.replace(
            before,
            instance_id=before.instance_id if join.instance_id is None else join.instance_id,
            rack_id=subscription.rack_id or before.rack_id,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            topic_names=subscription.topics,
            regex="",
            client_id=join.client_id,
            client_host=join.client_host,
            classic=ClassicMember(join.session_timeout_ms, join.protocols),
        )
        draft = Draft(before, after, changes, [], self.epoch)
        self._update_member(draft, now_ms, classic=True)
        reported = self._owned_by(subscription)
        former = self.static_member(join.instance_id)
        if former is not None and self._may_downgrade(frozenset({former.member_id}), joining=1):
            self._downgrade_with(join, draft, reported, now_ms)
            return None
        self._update_target(draft, now_ms)
        self._reconcile(draft, reported, now_ms)
        return draft

    def _finish_join(self, join: Join, draft: Draft, now_ms: int) -> None:
        member_id = draft.after.member_id
        draft.timers += (
            SetTimer(TimerKind.JOIN, member_id, None),
            SetTimer(TimerKind.SESSION, member_id, now_ms + join.session_timeout_ms),
            SetTimer(TimerKind.SYNC, member_id, now_ms + join.rebalance_timeout_ms),
        )
        self._submit(draft, Reply(join.slot, _joined(draft.after)))

    def _downgrade_with(self, join: Join, draft: Draft, reported: Reported, now_ms: int) -> None:
        """The last member of the new protocol is back as a classic one."""
        stale = self.assignment_epoch < draft.epoch
        if not stale:
            draft.assignment_epoch = self.assignment_epoch
            draft.target = self.target_of(draft.after)
            self._reconcile(draft, reported, now_ms)
        self._out.append(
            Downgrade(
                joining=draft.after,
                rebalance="the target assignment is out of date" if stale else None,
                answer=Reply(join.slot, _joined(draft.after)),
            )
        )

    def _owned_by(self, subscription: Subscription) -> Reported:
        """What a classic member says it owns, by topic id."""
        reported: dict[bytes, tuple[int, ...]] = {}
        for name, partitions in subscription.owned.items():
            info = self.topics.by_name(name)
            if info is not None:
                reported[info.topic_id] = partitions
        return reported

    # -------------------------------------------------------------------------- Sync, Heartbeat

    def _on_sync(self, sync: Sync, now_ms: int) -> None:
        try:
            member, classic = self._classic_member(sync.member_id, sync.instance_id)
            if sync.generation != member.epoch:
                raise Refused(ErrorCode.ILLEGAL_GENERATION)
            _check_protocol(sync, classic)
            behind = self.assignment_epoch > member.epoch
            if behind and member.state is not MemberState.UNREVOKED:
                self._expect_join(member, now_ms)
                raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
        except Refused as refused:
            self._out.append(Reply(sync.slot, SyncResult(error=refused.error)))
            return
        self._timers.set(SetTimer(TimerKind.SYNC, member.member_id, None))
        self._renew_classic(member, classic, now_ms)
        result = SyncResult(
            error=NONE,
            protocol_type=sync.protocol_type,
            protocol_name=sync.protocol_name,
            assignment=assignment_blob(self.topics, member.assigned, classic.protocols[0][1]),
        )
        self._out.append(Reply(sync.slot, result))

    def _on_heartbeat(self, heartbeat: Heartbeat, now_ms: int) -> None:
        try:
            member, classic = self._classic_member(heartbeat.member_id, heartbeat.instance_id)
            if heartbeat.generation != member.epoch:
                raise Refused(ErrorCode.ILLEGAL_GENERATION)
            self._renew_classic(member, classic, now_ms)
            if self._must_rejoin(member):
                self._expect_join(member, now_ms)
                raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
        except Refused as refused:
            self._out.append(Reply(heartbeat.slot, HeartbeatResult(refused.error)))
            return
        self._out.append(Reply(heartbeat.slot, HeartbeatResult(NONE)))

    def _must_rejoin(self, member: ConsumerMember) -> bool:
        """There is a newer target, something to give up, or nothing left to wait for."""
        if member.epoch < self.assignment_epoch or member.state is MemberState.UNREVOKED:
            return True
        return member.state is MemberState.UNRELEASED and not self._waits(member)

    def _waits(self, member: ConsumerMember) -> bool:
        """Whether others still own some of what the member is to have."""
        for topic_id, partitions in self.targets.get(member.member_id, {}).items():
            mine = member.assigned.get(topic_id, {})
            if any(
                p not in mine and self.current_partition_epoch(topic_id, p) != NO_EPOCH
                for p in partitions
            ):
                return True
        return False

    def _classic_member(
        self, member_id: str, instance_id: str | None
    ) -> tuple[ConsumerMember, ClassicMember]:
        if instance_id is None:
            member = self._dynamic(member_id, create=False)
        else:
            member = self._known_static(member_id, instance_id)
        if member.classic is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member, member.classic

    def _expect_join(self, member: ConsumerMember, now_ms: int) -> None:
        due_ms = now_ms + member.rebalance_timeout_ms
        self._timers.set(SetTimer(TimerKind.JOIN, member.member_id, due_ms, keep=True))

    def _renew_classic(self, member: ConsumerMember, classic: ClassicMember, now_ms: int) -> None:
        due_ms = now_ms + classic.session_timeout_ms
        self._timers.set(SetTimer(TimerKind.SESSION, member.member_id, due_ms))

    # ------------------------------------------------------------------------------------ Leave

    def _on_leave(self, leave: Leave, _: int) -> None:
        """LeaveGroup; an administrator may send away members of either protocol with it."""
        gone: set[str] = set()
        left: list[LeftMember] = []
        for leaver in leave.members:
            error = NONE
            try:
                if leaver.instance_id is None:
                    gone.add(self._dynamic(leaver.member_id, create=False).member_id)
                elif leaver.member_id == NO_MEMBER_ID:
                    member = self.static_member(leaver.instance_id)
                    if member is None:
                        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
                    gone.add(member.member_id)
                else:
                    gone.add(self._known_static(leaver.member_id, leaver.instance_id).member_id)
            except Refused as refused:
                error = refused.error
            left.append(LeftMember(leaver.member_id, leaver.instance_id, error))
        answer = Reply(leave.slot, LeaveResult(NONE, tuple(left)))
        if gone:
            self._fence(frozenset(gone), answer)
        else:
            self._out.append(answer)


def _subscription(join: Join) -> Subscription:
    try:
        return read_subscription(join.protocols[0][1])
    except DecodeError:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _joined(member: ConsumerMember) -> JoinResult:
    assert member.classic is not None
    return JoinResult(
        error=NONE,
        member_id=member.member_id,
        generation=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
    )


def _check_protocol(sync: Sync, classic: ClassicMember) -> None:
    """What a request does not say differs from nothing."""
    other_type = sync.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
    if other_type or sync.protocol_name not in (None, classic.protocols[0][0]):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
