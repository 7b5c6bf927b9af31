"""ShareGroupHeartbeat: the steps that `states` describes.

A `MemberUpdate` collects the changes of a request. The group changes only once they are stored.

Source: GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.assignors.base import (
    AssignorGroup,
    AssignorMember,
)
from mockbroker.core.groups.assignors.simple import assign_simple
from mockbroker.core.groups.events import ConsumerResult, Reply
from mockbroker.core.groups.modern.events import (
    JOIN_EPOCH,
    GroupChange,
    MemberChange,
    Store,
    StoredChange,
    current_assignment_change,
    removal,
)
from mockbroker.core.groups.modern.heartbeat import (
    heartbeat_result,
    session_timer,
    target_changes,
    updated_member,
)
from mockbroker.core.groups.modern.machine import submit
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.modern.topics import metadata_hash
from mockbroker.core.groups.share.events import (
    Initialize,
    PartitionsChange,
    ShareHeartbeat,
    ShareLeave,
    ShareStore,
)
from mockbroker.core.groups.share.group import ShareGroup
from mockbroker.core.groups.share.members import NO_TARGET, ShareMember, Target
from mockbroker.core.groups.share.partitions import moved, to_initialize
from mockbroker.core.groups.share.states import (
    EPOCH_ANSWERS,
    MEMBER_ACTIONS,
    MEMBER_STABLE,
    EpochRelation,
    MemberAction,
    MemberFacts,
    PartitionEvent,
)
from mockbroker_protocol import ErrorCode


class MemberUpdate(msgspec.Struct):
    """A member `before` and `after` the request, with the changes of the request."""

    before: ShareMember
    after: ShareMember
    changes: list[StoredChange]
    epoch: int
    rises: bool = False  # whether the request raises the group epoch
    assignment_epoch: int = 0
    target: Target = NO_TARGET
    initialize: Initialize | None = None


def on_heartbeat(group: ShareGroup, heartbeat: ShareHeartbeat, now_ms: int) -> None:
    try:
        group.check_size(heartbeat.member_id)
        before = _member(group, heartbeat)
    except ApiError as error:
        result = ConsumerResult(error=error.error, message=error.message)
        group.effects.append(Reply(heartbeat.callback, result))
        return
    update = MemberUpdate(before, _updated_member(before, heartbeat), [], group.epoch)
    _update_group_epoch(group, update)
    _update_target_assignment(group, update, now_ms)
    _reconcile(group, update)
    _start_initialization(group, update, now_ms)
    full = heartbeat.epoch == JOIN_EPOCH or heartbeat.topic_names is not None
    result = heartbeat_result(group, before, update.after, full=full)
    submit(
        group,
        ShareStore(
            changes=tuple(update.changes),
            answer=Reply(heartbeat.callback, result),
            timers=(session_timer(group, heartbeat.member_id, now_ms),),
            initialize=update.initialize,
        ),
    )


# ---------------------------------------------------------------------------------------- members


def _member(group: ShareGroup, heartbeat: ShareHeartbeat) -> ShareMember:
    """The member, with a valid epoch in the request; a new one if it joins."""
    if heartbeat.epoch == JOIN_EPOCH and heartbeat.member_id not in group.members:
        return group.new_member(heartbeat.member_id)
    member = group.known_member(heartbeat.member_id)
    relation = epoch_relation(member, heartbeat.epoch)
    if EPOCH_ANSWERS[relation] is not ErrorCode.NONE:
        raise group.fenced(member, heartbeat.epoch, previous_allowed=True)
    return member


def epoch_relation(member: ShareMember, epoch: int) -> EpochRelation:
    """The epoch of a request, compared with the member's."""
    if epoch == JOIN_EPOCH:
        return EpochRelation.JOINS
    if epoch == member.epoch:
        return EpochRelation.CURRENT
    if epoch > member.epoch:
        return EpochRelation.GREATER
    if epoch == member.previous_epoch:
        return EpochRelation.PREVIOUS
    return EpochRelation.SMALLER


def _updated_member(member: ShareMember, heartbeat: ShareHeartbeat) -> ShareMember:
    sent = {
        "rack_id": heartbeat.rack_id,
        "topic_names": heartbeat.topic_names,
        "client_id": heartbeat.client_id,
        "client_host": heartbeat.client_host,
    }
    return updated_member(member, sent)


# ------------------------------------------------------------------------------- 1. the group epoch


def _update_group_epoch(group: ShareGroup, update: MemberUpdate) -> None:
    before, after = update.before, update.after
    if after != before:
        update.changes.append(MemberChange(after.member_id, after))
    update.rises = after.topic_names != before.topic_names or (
        group.assignment_epoch >= group.epoch
        and not group.targets_overridden
        and _assignment_pending(group)
    )
    if not update.rises and group.compared_metadata_version == group.topics.version:
        return
    new_hash = metadata_hash(group.topics, _names_with(group, after))
    update.rises = update.rises or new_hash != group.metadata_hash
    if update.rises:
        update.epoch = group.epoch + 1
        update.changes.append(GroupChange(update.epoch, new_hash))
    group.compared_metadata_version = group.topics.version


def _assignment_pending(group: ShareGroup) -> bool:
    """Whether the target does not have exactly the initialized partitions of a subscribed topic
    (GroupMetadataManager.initializedAssignmentPending).
    """
    names = group.subscribed_names()
    return any(
        _targeted(group.targets.values(), topic_id) != line.partitions
        for topic_id, line in group.partitions.initialized.items()
        if line.name in names
    )


def _targeted(targets: Iterable[Target], topic_id: bytes) -> frozenset[int]:
    return frozenset().union(*(target.get(topic_id, frozenset()) for target in targets))


def _names_with(group: ShareGroup, after: ShareMember) -> set[str]:
    """The subscribed topic names after the update."""
    members = {**group.members, after.member_id: after}
    return {name for member in members.values() for name in member.topic_names}


# ------------------------------------------------------------------------- 2. the target assignment


def _update_target_assignment(group: ShareGroup, update: MemberUpdate, now_ms: int) -> None:
    """Run the assignor if the group epoch is ahead and the assignment interval is over."""
    member_id = update.after.member_id
    update.assignment_epoch = group.assignment_epoch
    update.target = group.targets.get(member_id, NO_TARGET)
    if group.assignment_epoch >= update.epoch or not group.may_assign(now_ms):
        return
    members = {**group.members, member_id: update.after}
    targets = assign_simple(_spec(group, members), group.partitions.initialized_partitions())
    update.changes += target_changes(group, members, targets, NO_TARGET, update.epoch, now_ms)
    update.assignment_epoch = update.epoch
    update.target = targets.get(member_id, NO_TARGET)


def _spec(group: ShareGroup, members: dict[str, ShareMember]) -> AssignorGroup:
    partitions: dict[bytes, int] = {}
    specs: dict[str, AssignorMember] = {}
    for member_id, member in members.items():
        found = [group.topics.by_name(name) for name in member.topic_names]
        topics = [topic for topic in found if topic is not None]
        partitions.update((topic.topic_id, topic.partitions) for topic in topics)
        specs[member_id] = AssignorMember(
            None,
            frozenset(topic.topic_id for topic in topics),
            group.targets.get(member_id, NO_TARGET),
        )
    # As ModernGroup.subscriptionType: every topic has all members.
    uniform = len({member.topic_names for member in members.values()}) <= 1
    return AssignorGroup(specs, uniform, partitions)


# -------------------------------------------------------------------------------- 3. reconciliation


def _reconcile(group: ShareGroup, update: MemberUpdate) -> None:
    member = update.after
    behind = member.epoch != update.assignment_epoch
    action = MEMBER_ACTIONS[MemberFacts(behind, update.rises)]
    if action is MemberAction.KEEP:
        return
    known = {
        topic.topic_id
        for name in member.topic_names
        if (topic := group.topics.by_name(name)) is not None
    }
    assigned = {topic_id: ps for topic_id, ps in update.target.items() if topic_id in known}
    reconciled = msgspec.structs.replace(member, assigned=assigned)
    if action is MemberAction.ADVANCE:
        reconciled = msgspec.structs.replace(
            reconciled,
            epoch=update.assignment_epoch,
            previous_epoch=member.epoch,
            state=MEMBER_STABLE,
        )
    if reconciled != member:
        update.after = reconciled
        update.changes.append(current_assignment_change(reconciled))


# -------------------------------------------------------------------------------- 4. initialization


def _start_initialization(group: ShareGroup, update: MemberUpdate, now_ms: int) -> None:
    """Initialize the partitions of subscribed topics that have no share state yet."""
    waited_ms = now_ms - group.partitions_stored_ms
    which = to_initialize(
        group.partitions,
        _names_with(group, update.after),
        group.topics,
        retry=waited_ms >= group.settings.initialize_retry_ms,
    )
    if not which:
        return
    after = moved(group.partitions, PartitionEvent.INITIALIZE, which, group.topics)
    update.changes.append(PartitionsChange(after))
    update.initialize = Initialize(which, update.epoch)


# ----------------------------------------------------------------------------------------- leaving


def on_leave(group: ShareGroup, leave: ShareLeave, _: int) -> None:
    try:
        group.known_member(leave.member_id)
    except ApiError as error:
        result = ConsumerResult(error=error.error, message=error.message)
        group.effects.append(Reply(leave.callback, result))
        return
    result = ConsumerResult(member_id=leave.member_id, epoch=-1)
    remove_member(group, leave.member_id, Reply(leave.callback, result))


def remove_member(
    group: ShareGroup, member_id: str, answer: Reply | None, retry: SetTimer | None = None
) -> None:
    """Remove a member: the group epoch rises (shareGroupFenceMember)."""
    names = {
        name
        for member in group.members.values()
        if member.member_id != member_id
        for name in member.topic_names
    }
    changes = (
        *removal(member_id),
        GroupChange(group.epoch + 1, metadata_hash(group.topics, names)),
    )
    session = SetTimer(TimerKind.SESSION, member_id, None)
    group.effects.append(Store(changes=changes, answer=answer, timers=(session,), retry=retry))
