"""ConsumerGroupHeartbeat: the three steps that `states` describes.

A `MemberUpdate` collects the changes of one request. The group changes only once they are stored.

Source: GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.assignors.base import (
    AssignorGroup,
    AssignorMember,
    assignors_by_name,
)
from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    RegexChange,
    RegexesResolved,
    ResolvedRegex,
    ResolveRegexes,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, Counter, most_used
from mockbroker.core.groups.consumer.members import (
    NO_TARGET,
    ConsumerMember,
    Reported,
    Target,
    owns_only,
)
from mockbroker.core.groups.consumer.reconcile import ReconcileInput, reconcile
from mockbroker.core.groups.events import ConsumerResult, Reply
from mockbroker.core.groups.modern.events import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    GroupChange,
    MemberChange,
    Store,
    StoredChange,
    TargetAssignmentChange,
    current_assignment_change,
    removal,
)
from mockbroker.core.groups.modern.heartbeat import (
    heartbeat_result,
    in_unknown_state,
    rebalance_timer,
    session_timer,
    target_changes,
    updated_member,
)
from mockbroker.core.groups.modern.machine import submit as store
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker.core.groups.modern.topics import metadata_hash
from mockbroker.core.patterns import InvalidPatternError, compile_pattern
from mockbroker_protocol import ErrorCode

REGEX_REFRESH_INTERVAL_MIN_MS = 10_000  # REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, not configurable
NEVER_REFRESHED_MS = -(1 << 62)


class MemberUpdate(msgspec.Struct):
    """A member `before` and `after` the request, with the changes and timers of the request.

    For a new member, `before` has defaults only. For a static member that returns, it is the
    replaced member with the new id.
    """

    before: ConsumerMember
    after: ConsumerMember
    changes: list[StoredChange]
    timers: list[SetTimer]
    epoch: int
    resubscribed: bool = False
    refresh: frozenset[str] = frozenset()  # regexes to resolve once this is stored
    assignment_epoch: int = 0
    target: Target = NO_TARGET


def on_consumer_heartbeat(group: ConsumerGroup, heartbeat: ConsumerHeartbeat, now_ms: int) -> None:
    try:
        group.check_size(heartbeat.member_id)
        update = _member_update(group, heartbeat)
        update_member(group, update, now_ms)
        update_target_assignment(group, update, now_ms)
        maybe_reconcile(group, update, heartbeat.reported, now_ms)
    except ApiError as error:
        group.request_metadata_refresh()
        result = ConsumerResult(error=error.error, message=error.message)
        group.effects.append(Reply(heartbeat.callback, result))
        return
    update.timers.append(session_timer(group, heartbeat.member_id, now_ms))
    submit(group, update, Reply(heartbeat.callback, _result(group, heartbeat, update)))
    _request_regex_resolution(group, update)


def _member_update(group: ConsumerGroup, heartbeat: ConsumerHeartbeat) -> MemberUpdate:
    joins = heartbeat.epoch == JOIN_EPOCH
    changes: list[StoredChange] = []
    if heartbeat.instance_id is None:
        before = dynamic_member(group, heartbeat.member_id, create=joins)
        _check_epoch(group, before, heartbeat)
    elif joins:
        before = joining_static_member(
            group, heartbeat.member_id, heartbeat.instance_id, changes, classic=False
        )
    else:
        before = known_static_member(group, heartbeat.member_id, heartbeat.instance_id)
        _check_epoch(group, before, heartbeat)
    return MemberUpdate(before, _updated_member(before, heartbeat), changes, [], group.epoch)


def _result(
    group: ConsumerGroup, heartbeat: ConsumerHeartbeat, update: MemberUpdate
) -> ConsumerResult:
    full = heartbeat.epoch == JOIN_EPOCH or (
        heartbeat.rebalance_timeout_ms is not None
        and (heartbeat.topic_names is not None or heartbeat.regex is not None)
        and heartbeat.reported is not None
    )
    return heartbeat_result(group, update.before, update.after, full=full)


def _updated_member(member: ConsumerMember, heartbeat: ConsumerHeartbeat) -> ConsumerMember:
    """The member with the fields of the heartbeat; it uses the consumer protocol now."""
    sent = {
        "instance_id": heartbeat.instance_id,
        "rack_id": heartbeat.rack_id,
        "rebalance_timeout_ms": heartbeat.rebalance_timeout_ms,
        "topic_names": heartbeat.topic_names,
        "regex": heartbeat.regex,
        "assignor": heartbeat.assignor,
        "client_id": heartbeat.client_id,
        "client_host": heartbeat.client_host,
    }
    after = updated_member(member, sent)
    return after if after.classic is None else msgspec.structs.replace(after, classic=None)


# ------------------------------------------------------------------------- members and their epochs


def dynamic_member(group: ConsumerGroup, member_id: str, *, create: bool) -> ConsumerMember:
    if create and member_id not in group.members:
        return group.new_member(member_id)
    return group.known_member(member_id)


def known_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def joining_static_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    changes: list[StoredChange],
    *,
    classic: bool,
) -> ConsumerMember:
    """A static member that is new, or replaces the member with its instance id."""
    former = group.static_member(instance_id)
    if former is None:
        return dynamic_member(group, member_id, create=True)
    if not classic and former.classic is None and former.epoch != STATIC_LEAVE_EPOCH:
        # Both use the consumer protocol: the former member must leave first.
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {former.member_id} member.",
        )
    member = msgspec.structs.replace(former, member_id=member_id, epoch=0, previous_epoch=0)
    target = group.targets.get(former.member_id, NO_TARGET)
    changes += removal(former.member_id)
    changes += (
        MemberChange(member_id, member),
        TargetAssignmentChange(member_id, target),
        current_assignment_change(member),
    )
    return member


def _check_epoch(
    group: ConsumerGroup, member: ConsumerMember, heartbeat: ConsumerHeartbeat
) -> None:
    epoch = heartbeat.epoch
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    # The answer with the current epoch may have been lost.
    lost_answer = (
        epoch < member.epoch
        and epoch == member.previous_epoch
        and owns_only(heartbeat.reported, member.assigned)
    )
    if not lost_answer:
        raise group.fenced(member, epoch)


# ------------------------------------------------------------------------------- 1. the group epoch


def update_member(
    group: ConsumerGroup, update: MemberUpdate, now_ms: int, *, classic: bool = False
) -> None:
    """Store a changed member, and raise the group epoch if its subscription changed."""
    before, after = update.before, update.after
    names_changed = False
    if after != before:
        update.changes.append(MemberChange(after.member_id, after))
        names_changed = after.topic_names != before.topic_names
    regex_changed, resolved = _update_regex(group, update, now_ms)
    update.resubscribed = names_changed or regex_changed
    # An unresolved regex changes nothing; its resolution raises the epoch.
    rises = update.resubscribed if classic else names_changed or resolved
    if rises or group.compared_metadata_version != group.topics.version:
        _update_group_epoch(group, update, rises=rises)


def _update_regex(group: ConsumerGroup, update: MemberUpdate, now_ms: int) -> tuple[bool, bool]:
    """Whether the member's regex has changed, and whether the new one is resolved."""
    old, new = update.before.regex, update.after.regex
    resolved = False
    urgent = False
    if old != new:
        if old and group.regexes.get(old) == 1:
            update.changes.append(RegexChange(old, None))
        if not new:
            resolved = True
        elif new in group.regexes:
            resolved = new in group.resolved
        else:
            try:
                compile_pattern(new)
            except InvalidPatternError as error:
                raise ApiError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex `{new}` is not a valid regular expression: {error}.",
                ) from None
            urgent = True
    update.refresh = _regexes_to_refresh(group, old, new, now_ms, urgent=urgent)
    return old != new, resolved


def _regexes_to_refresh(
    group: ConsumerGroup, old: str, new: str, now_ms: int, *, urgent: bool
) -> frozenset[str]:
    """All regexes of the group if a refresh is due, else none."""
    if not urgent and not group.regexes:
        return frozenset()
    any_resolved = next(iter(group.resolved.values()), None)
    refreshed_ms = NEVER_REFRESHED_MS if any_resolved is None else any_resolved.timestamp_ms
    if now_ms <= refreshed_ms + REGEX_REFRESH_INTERVAL_MIN_MS:
        return frozenset()
    regexes = Counter(group.regexes)
    if old:
        regexes.count(old, -1)
    if new:
        regexes.count(new, 1)
    version = 0 if any_resolved is None else any_resolved.version
    if (
        urgent
        or len(regexes) != len(group.resolved)
        or version < group.topics.created_version
        or now_ms > refreshed_ms + group.settings.regex_refresh_interval_ms
    ):
        return frozenset(regexes)
    return frozenset()


def _update_group_epoch(group: ConsumerGroup, update: MemberUpdate, *, rises: bool) -> None:
    """Raise the group epoch if `rises` is set or the hash of the subscribed topics has changed."""
    new_hash = metadata_hash(group.topics, _names_with(group, update.before, update.after))
    if rises or new_hash != group.metadata_hash:
        update.epoch = group.epoch + 1
        update.changes.append(GroupChange(update.epoch, new_hash))
    group.compared_metadata_version = group.topics.version


def _names_with(group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> set[str]:
    """The subscribed topic names after the update."""
    names = Counter(group.subscribed_topic_names)
    for name in before.topic_names:
        names.count(name, -1)
    for name in after.topic_names:
        names.count(name, 1)
    regexes = _regexes_with(group, before, after)
    for regex, resolved in group.resolved.items():
        if regex in regexes:
            for name in resolved.topics:
                names.count(name, 1)
    return set(names)


def _regexes_with(group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> Counter:
    regexes = Counter(group.regexes)
    regexes.count(before.regex, -1)
    regexes.count(after.regex, 1)
    return regexes


# ------------------------------------------------------------------------- 2. the target assignment


def update_target_assignment(group: ConsumerGroup, update: MemberUpdate, now_ms: int) -> None:
    """Run the assignor if the group epoch is ahead and the assignment interval is over."""
    update.assignment_epoch = group.assignment_epoch
    update.target = group.target_of(update.after)
    if group.assignment_epoch >= update.epoch or not group.may_assign(now_ms):
        return
    members = _members_with(group, update.after)
    assignors = Counter(group.assignors)
    assignors.count(update.before.assignor, -1)
    assignors.count(update.after.assignor, 1)
    assignor = assignors_by_name()[most_used(assignors) or group.settings.assignors[0]]
    targets = assignor(_spec(group, members))
    update.changes += target_changes(group, members, targets, NO_TARGET, update.epoch, now_ms)
    update.assignment_epoch = update.epoch
    update.target = targets.get(update.after.member_id, NO_TARGET)


def _members_with(group: ConsumerGroup, after: ConsumerMember) -> dict[str, ConsumerMember]:
    """The members with `after`, which replaces the member with its instance id."""
    members = dict(group.members)
    if after.instance_id is not None:
        former = group.static_members.get(after.instance_id)
        if former is not None and former != after.member_id:
            members.pop(former, None)
    members[after.member_id] = after
    return members


def _spec(group: ConsumerGroup, members: dict[str, ConsumerMember]) -> AssignorGroup:
    partitions: dict[bytes, int] = {}
    specs: dict[str, AssignorMember] = {}
    for member_id, member in members.items():
        topics = _subscribed(group, member, partitions)
        specs[member_id] = AssignorMember(
            member.instance_id, topics, _current_target(group, member)
        )
    # As ConsumerGroup.subscriptionType: by names or by a regex, not by both.
    kinds = {(member.topic_names, member.regex) for member in members.values()}
    uniform = len(kinds) == 1 and not any(names and regex for names, regex in kinds)
    return AssignorGroup(specs, uniform, partitions)


def _current_target(group: ConsumerGroup, member: ConsumerMember) -> Target:
    target = group.targets.get(member.member_id)
    return group.target_of(member) if target is None else target


def _subscribed(
    group: ConsumerGroup, member: ConsumerMember, partitions: dict[bytes, int] | None = None
) -> frozenset[bytes]:
    """The ids of a member's subscribed topics that exist."""
    names = member.topic_names
    resolved = group.resolved.get(member.regex) if member.regex else None
    if resolved is not None:
        names |= resolved.topics
    found = [info for name in names if (info := group.topics.by_name(name)) is not None]
    if partitions is not None:
        partitions.update((info.topic_id, info.partitions) for info in found)
    return frozenset(info.topic_id for info in found)


# -------------------------------------------------------------------------------- 3. reconciliation


def maybe_reconcile(
    group: ConsumerGroup, update: MemberUpdate, reported: Reported, now_ms: int
) -> None:
    member = update.after
    if not update.resubscribed and member.is_reconciled(update.assignment_epoch):
        return
    inputs = ReconcileInput(
        update.assignment_epoch,
        update.target,
        _subscribed(group, member),
        group.current_partition_epoch,
        reported,
        update.resubscribed,
    )
    reconciled = reconcile(member, inputs)
    if reconciled is None:
        raise in_unknown_state(group.group_type, "partitions")
    if reconciled == member:
        return
    update.after = reconciled
    update.changes.append(current_assignment_change(reconciled))
    if reconciled.classic is None:
        update.timers.append(rebalance_timer(group, reconciled, now_ms))


def submit(group: ConsumerGroup, update: MemberUpdate, answer: Reply) -> None:
    changes, timers = tuple(update.changes), tuple(update.timers)
    store(group, Store(changes=changes, answer=answer, timers=timers))


# ------------------------------------------------------------------------------ regular expressions


def on_regexes_resolved(group: ConsumerGroup, resolved: RegexesResolved, _: int) -> None:
    """Store the topics of the regexes; a difference raises the group epoch."""
    changes: list[StoredChange] = []
    names = set(group.subscribed_topic_names)
    rises = False
    for regex in sorted(group.regexes):
        topics = resolved.topics.get(regex)
        old = group.resolved.get(regex)
        if topics is None:
            names |= old.topics if old else frozenset()
            continue
        rises = rises or topics != (old.topics if old else frozenset())
        names |= topics
        entry = ResolvedRegex(topics, resolved.version, resolved.timestamp_ms)
        changes.append(RegexChange(regex, entry))
    new_hash = metadata_hash(group.topics, names)
    if rises or new_hash != group.metadata_hash:
        changes.append(GroupChange(group.epoch + 1, new_hash))
        group.compared_metadata_version = group.topics.version
    if changes:
        group.effects.append(Store(changes=tuple(changes)))


def _request_regex_resolution(group: ConsumerGroup, update: MemberUpdate) -> None:
    if update.refresh:
        group.effects.append(ResolveRegexes(update.refresh))
