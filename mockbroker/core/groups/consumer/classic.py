"""Members of the classic protocol in a consumer group (KIP-848, online migration).

They send JoinGroup, SyncGroup and Heartbeat, and no request waits. JoinGroup is a heartbeat with a
subscription. Its answer has the member epoch as generation and no leader, so that the client acts
as a follower. SyncGroup returns the assignment. Heartbeat returns REBALANCE_IN_PROGRESS if the
member has partitions to revoke or can get new ones.

Source: GroupMetadataManager, classicGroup...ToConsumerGroup.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.consumer.events import Downgrade
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.heartbeat import (
    MemberUpdate,
    dynamic_member,
    joining_static_member,
    known_static_member,
    maybe_reconcile,
    submit,
    update_member,
    update_target_assignment,
)
from mockbroker.core.groups.consumer.leaving import fence_members, may_downgrade
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
from mockbroker.core.groups.modern.events import StoredChange
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.exceptions import DecodeError

NONE = ErrorCode.NONE


def on_join(group: ConsumerGroup, join: Join, now_ms: int) -> None:
    member_id = join.member_id or join.new_member_id
    try:
        _check_migration(group)
        group.check_size(member_id)
        _check_protocols(group, join)
        if join.member_id_required and not join.member_id and join.instance_id is None:
            result = JoinResult(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            group.effects.append(Reply(join.callback, result))
            return
        update = _join_update(group, join, member_id, now_ms)
    except ApiError as error:
        group.request_metadata_refresh()
        result = JoinResult(error=error.error, member_id=NO_MEMBER_ID)
        group.effects.append(Reply(join.callback, result))
        return
    if update is not None:
        _finish_join(group, join, update, now_ms)


def _check_migration(group: ConsumerGroup) -> None:
    migration = group.settings.migration
    if not (migration.upgrade or migration.downgrade):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _check_protocols(group: ConsumerGroup, join: Join) -> None:
    """All classic members must support one protocol of the joining member."""
    supported = any(
        group.classic_protocols.get(name, 0) == group.classic_count for name, _ in join.protocols
    )
    if join.protocol_type != CONSUMER_PROTOCOL_TYPE or not supported:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _join_update(
    group: ConsumerGroup, join: Join, member_id: str, now_ms: int
) -> MemberUpdate | None:
    """The update of the member that joins; None if the group is downgraded."""
    changes: list[StoredChange] = []
    if join.instance_id is None:
        before = dynamic_member(group, member_id, create=True)
    elif join.member_id:
        before = known_static_member(group, member_id, join.instance_id)
    else:
        before = joining_static_member(group, member_id, join.instance_id, changes, classic=True)
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
    update = MemberUpdate(before, after, changes, [], group.epoch)
    update_member(group, update, now_ms, classic=True)
    reported = _owned_by(group, subscription)
    former = group.static_member(join.instance_id)
    if former is not None and may_downgrade(group, frozenset({former.member_id}), joining=1):
        _downgrade_with(group, join, update, reported, now_ms)
        return None
    update_target_assignment(group, update, now_ms)
    maybe_reconcile(group, update, reported, now_ms)
    return update


def _finish_join(group: ConsumerGroup, join: Join, update: MemberUpdate, now_ms: int) -> None:
    member_id = update.after.member_id
    update.timers += (
        SetTimer(TimerKind.JOIN, member_id, None),
        SetTimer(TimerKind.SESSION, member_id, now_ms + join.session_timeout_ms),
        SetTimer(TimerKind.SYNC, member_id, now_ms + join.rebalance_timeout_ms),
    )
    submit(group, update, Reply(join.callback, _joined(update.after)))


def _downgrade_with(
    group: ConsumerGroup, join: Join, update: MemberUpdate, reported: Reported, now_ms: int
) -> None:
    """The last member of the consumer protocol has returned as a classic member."""
    stale = group.assignment_epoch < update.epoch
    if not stale:
        update.assignment_epoch = group.assignment_epoch
        update.target = group.target_of(update.after)
        maybe_reconcile(group, update, reported, now_ms)
    group.effects.append(
        Downgrade(
            joining=update.after,
            rebalance="the target assignment is out of date" if stale else None,
            answer=Reply(join.callback, _joined(update.after)),
        )
    )


def _owned_by(group: ConsumerGroup, subscription: Subscription) -> Reported:
    """The owned partitions of a subscription, by topic id."""
    reported: dict[bytes, tuple[int, ...]] = {}
    for name, partitions in subscription.owned.items():
        info = group.topics.by_name(name)
        if info is not None:
            reported[info.topic_id] = partitions
    return reported


def on_sync(group: ConsumerGroup, sync: Sync, now_ms: int) -> None:
    try:
        member, classic = _classic_member(group, sync.member_id, sync.instance_id)
        if sync.generation != member.epoch:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        _check_protocol(sync, classic)
        behind = group.assignment_epoch > member.epoch
        if behind and member.state is not MemberState.UNREVOKED:
            _expect_join(group, member, now_ms)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    except ApiError as error:
        group.effects.append(Reply(sync.callback, SyncResult(error=error.error)))
        return
    group.timers.set(SetTimer(TimerKind.SYNC, member.member_id, None))
    group.renew_classic_session(member, classic, now_ms)
    result = SyncResult(
        error=NONE,
        protocol_type=sync.protocol_type,
        protocol_name=sync.protocol_name,
        assignment=assignment_blob(group.topics, member.assigned, classic.protocols[0][1]),
    )
    group.effects.append(Reply(sync.callback, result))


def on_heartbeat(group: ConsumerGroup, heartbeat: Heartbeat, now_ms: int) -> None:
    try:
        member, classic = _classic_member(group, heartbeat.member_id, heartbeat.instance_id)
        if heartbeat.generation != member.epoch:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        group.renew_classic_session(member, classic, now_ms)
        if _must_rejoin(group, member):
            _expect_join(group, member, now_ms)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    except ApiError as error:
        group.effects.append(Reply(heartbeat.callback, HeartbeatResult(error.error)))
        return
    group.effects.append(Reply(heartbeat.callback, HeartbeatResult(NONE)))


def _must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether there is a newer target, a partition to revoke, or a partition that became free."""
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED:
        return True
    return member.state is MemberState.UNRELEASED and not _waits(group, member)


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether other members own partitions of the member's target."""
    for topic_id, partitions in group.targets.get(member.member_id, {}).items():
        mine = member.assigned.get(topic_id, {})
        if any(
            p not in mine and group.current_partition_epoch(topic_id, p) != NO_EPOCH
            for p in partitions
        ):
            return True
    return False


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMember]:
    if instance_id is None:
        member = dynamic_member(group, member_id, create=False)
    else:
        member = known_static_member(group, member_id, instance_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member, member.classic


def _expect_join(group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
    due_ms = now_ms + member.rebalance_timeout_ms
    group.timers.set(SetTimer(TimerKind.JOIN, member.member_id, due_ms, keep=True))


def on_leave(group: ConsumerGroup, leave: Leave, _: int) -> None:
    """LeaveGroup; an administrator may remove members of either protocol."""
    gone: set[str] = set()
    left: list[LeftMember] = []
    for leaver in leave.members:
        error = NONE
        try:
            if leaver.instance_id is None:
                gone.add(dynamic_member(group, leaver.member_id, create=False).member_id)
            elif leaver.member_id == NO_MEMBER_ID:
                member = group.static_member(leaver.instance_id)
                if member is None:
                    raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
                gone.add(member.member_id)
            else:
                gone.add(known_static_member(group, leaver.member_id, leaver.instance_id).member_id)
        except ApiError as refusal:
            error = refusal.error
        left.append(LeftMember(leaver.member_id, leaver.instance_id, error))
    answer = Reply(leave.callback, LeaveResult(NONE, tuple(left)))
    if gone:
        fence_members(group, frozenset(gone), answer)
    else:
        group.effects.append(answer)


def _subscription(join: Join) -> Subscription:
    try:
        return read_subscription(join.protocols[0][1])
    except DecodeError:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


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
    """Raise INCONSISTENT_GROUP_PROTOCOL for another protocol; None is accepted."""
    other_type = sync.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
    if other_type or sync.protocol_name not in (None, classic.protocols[0][0]):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
