"""What one heartbeat changes: the three steps that `states` describes.

A *draft* is what has been worked out so far for one member: it before and after, the changes to
store, and the epochs as they are going to be. The group itself stays as it is meanwhile.

Source: GroupMetadataManager.consumerGroupHeartbeat and what it calls.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.groups.assignors.base import AssignorGroup, AssignorMember, by_name, hash_order
from mockbroker.core.groups.consumer.base import ConsumerGroupBase, Counter, most_used
from mockbroker.core.groups.consumer.events import (
    Change,
    GroupChange,
    MemberChange,
    RegexChange,
    RegexesResolved,
    ResolvedRegex,
    ResolveRegexes,
    SetTimer,
    Store,
    TargetChange,
    TargetEpochChange,
    TimerKind,
    current_change,
    removal,
)
from mockbroker.core.groups.consumer.members import (
    NO_TARGET,
    ConsumerMember,
    Reported,
    Target,
    owns_only,
)
from mockbroker.core.groups.consumer.reconcile import ReconcileInput, reconcile
from mockbroker.core.groups.consumer.states import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    MemberState,
)
from mockbroker.core.groups.consumer.topics import metadata_hash
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.patterns import InvalidPatternError, compile_pattern
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE
REGEX_REFRESH_LEAST_MS = 10_000  # REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, not configurable
LONG_AGO_MS = -(1 << 62)


class Refused(Exception):  # noqa: N818 (an answer, not a failure)
    """The request is answered with an error, and nothing changes."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.message = message or error.message


class Draft(msgspec.Struct):
    """A member `before` and `after` the request, and what that takes.

    A member that is new has a blank `before`; one that takes the place of a static member, that of
    its former self under the new id.
    """

    before: ConsumerMember
    after: ConsumerMember
    changes: list[Change]
    timers: list[SetTimer]
    epoch: int
    resubscribed: bool = False
    refresh: frozenset[str] = frozenset()  # regexes to look up once this is stored
    assignment_epoch: int = 0
    target: Target = NO_TARGET


class ConsumerGroupSteps(ConsumerGroupBase):
    """How a member's request is worked out."""

    __slots__ = ()

    # ------------------------------------------------------------------ who is it, is it allowed

    def _check_group_size(self, member_id: str) -> None:
        if len(self.members) >= self.settings.size_max and member_id not in self.members:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                "The consumer group has reached its maximum capacity of "
                f"{self.settings.size_max} members.",
            )

    def _dynamic(self, member_id: str, *, create: bool) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            if not create:
                raise Refused(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"Member {member_id} is not a member of group {self.group_id}.",
                )
            member = ConsumerMember(member_id=member_id)
        return member

    def _known_static(self, member_id: str, instance_id: str) -> ConsumerMember:
        member = self.static_member(instance_id)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            raise Refused(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{member.member_id}.",
            )
        return member

    def _joining_static(
        self, member_id: str, instance_id: str, changes: list[Change], *, classic: bool
    ) -> ConsumerMember:
        """A static member that is new, or takes the place of its former self."""
        former = self.static_member(instance_id)
        if former is None:
            return self._dynamic(member_id, create=True)
        if not classic and former.classic is None and former.epoch != STATIC_LEAVE_EPOCH:
            # Both speak the new protocol: the former one has to say that it has left.
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {former.member_id} member.",
            )
        member = msgspec.structs.replace(former, member_id=member_id, epoch=0, previous_epoch=0)
        target = self.targets.get(former.member_id, NO_TARGET)
        changes += removal(former.member_id)
        changes += (
            MemberChange(member_id, member),
            TargetChange(member_id, target),
            current_change(member),
        )
        return member

    @staticmethod
    def _check_epoch(member: ConsumerMember, epoch: int, reported: Reported) -> None:
        if epoch in (JOIN_EPOCH, member.epoch):
            return
        # The answer that told it the present epoch may have got lost.
        lost_answer = (
            epoch < member.epoch
            and epoch == member.previous_epoch
            and owns_only(reported, member.assigned)
        )
        if not lost_answer:
            which = "greater" if epoch > member.epoch else "smaller"
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The consumer group member has a {which} member epoch ({epoch}) than the one "
                f"known by the group coordinator ({member.epoch}). The member must abandon all its "
                "partitions and rejoin.",
            )

    # ------------------------------------------------------------------------ 1. the group's epoch

    def _update_member(self, draft: Draft, now_ms: int, *, classic: bool = False) -> None:
        """Write the member down if it changed, and raise the group epoch if that matters."""
        before, after = draft.before, draft.after
        names_changed = False
        if after != before:
            draft.changes.append(MemberChange(after.member_id, after))
            names_changed = after.topic_names != before.topic_names
        regex_changed, resolved = self._update_regex(draft, now_ms)
        # A regex that nobody has looked up yet changes nothing; the epoch rises once it is.
        rises = names_changed or (regex_changed if classic else resolved)
        draft.resubscribed = rises if classic else names_changed or regex_changed
        if rises or self._seen_version != self.topics.version:
            self._update_group_epoch(draft, rises=rises)

    def _update_regex(self, draft: Draft, now_ms: int) -> tuple[bool, bool]:
        """Whether the member has another regex, and whether its topics are known already."""
        old, new = draft.before.regex, draft.after.regex
        resolved = False
        urgent = False
        if old != new:
            if old and self.regexes.get(old) == 1:
                draft.changes.append(RegexChange(old, None))
            if not new:
                resolved = bool(old)
            elif new in self.regexes:
                resolved = new in self.resolved
            else:
                try:
                    compile_pattern(new)
                except InvalidPatternError as error:
                    raise Refused(
                        ErrorCode.INVALID_REGULAR_EXPRESSION,
                        f"SubscribedTopicRegex `{new}` is not a valid regular expression: {error}.",
                    ) from None
                urgent = True
        draft.refresh = self._regexes_to_refresh(old, new, now_ms, urgent=urgent)
        return old != new, resolved

    def _regexes_to_refresh(
        self, old: str, new: str, now_ms: int, *, urgent: bool
    ) -> frozenset[str]:
        """All of the group's regexes, if it is time to look them up again, else none."""
        if not urgent and not self.regexes:
            return frozenset()
        any_resolved = next(iter(self.resolved.values()), None)
        refreshed_ms = LONG_AGO_MS if any_resolved is None else any_resolved.timestamp_ms
        if now_ms <= refreshed_ms + REGEX_REFRESH_LEAST_MS:
            return frozenset()
        regexes = Counter(self.regexes)
        if old:
            regexes.count(old, -1)
        if new:
            regexes.count(new, 1)
        version = 0 if any_resolved is None else any_resolved.version
        if (
            urgent
            or len(regexes) != len(self.resolved)
            or version < self.topics.created_version
            or now_ms > refreshed_ms + self.settings.regex_refresh_interval_ms
        ):
            return frozenset(regexes)
        return frozenset()

    def _update_group_epoch(self, draft: Draft, *, rises: bool) -> None:
        """Raise the group epoch if asked to, or if a subscribed topic is no longer what it was."""
        new_hash = metadata_hash(self.topics, self._names_with(draft.before, draft.after))
        if rises or new_hash != self.metadata_hash:
            draft.epoch = self.epoch + 1
            draft.changes.append(GroupChange(draft.epoch, new_hash))
        self._seen_version = self.topics.version

    def _names_with(self, before: ConsumerMember, after: ConsumerMember) -> set[str]:
        """The names subscribed to once the member has changed."""
        names = Counter(self._names)
        for name in before.topic_names:
            names.count(name, -1)
        for name in after.topic_names:
            names.count(name, 1)
        regexes = self._regexes_with(before, after)
        for regex, resolved in self.resolved.items():
            if regex in regexes:
                for name in resolved.topics:
                    names.count(name, 1)
        return set(names)

    def _regexes_with(self, before: ConsumerMember, after: ConsumerMember) -> Counter:
        regexes = Counter(self.regexes)
        regexes.count(before.regex, -1)
        regexes.count(after.regex, 1)
        return regexes

    # --------------------------------------------------------------------- 2. the target assignment

    def _update_target(self, draft: Draft, now_ms: int) -> None:
        """Have the assignor share out anew, if the group epoch is ahead and it is time to."""
        draft.assignment_epoch = self.assignment_epoch
        draft.target = self.target_of(draft.after)
        if self.assignment_epoch >= draft.epoch or not self._may_assign(now_ms):
            return
        members = self._members_with(draft.after)
        assignors = Counter(self.assignors)
        assignors.count(draft.before.assignor, -1)
        assignors.count(draft.after.assignor, 1)
        assignor = by_name()[most_used(assignors) or self.settings.assignors[0]]
        targets = assignor(self._spec(members))
        for member_id in hash_order(members, string_hash):
            target = targets.get(member_id, NO_TARGET)
            if self.targets.get(member_id) != target:
                draft.changes.append(TargetChange(member_id, target))
        draft.changes.append(TargetEpochChange(draft.epoch, now_ms))
        draft.assignment_epoch = draft.epoch
        draft.target = targets.get(draft.after.member_id, NO_TARGET)

    def _may_assign(self, now_ms: int) -> bool:
        if self.assignment_timestamp_ms == 0:
            return True
        return now_ms >= self.assignment_timestamp_ms + self.settings.assignment_interval_ms

    def _members_with(self, after: ConsumerMember) -> dict[str, ConsumerMember]:
        """The members once `after` is among them, in place of a static member's former self."""
        members = dict(self.members)
        if after.instance_id is not None:
            former = self.static.get(after.instance_id)
            if former is not None and former != after.member_id:
                members.pop(former, None)
        members[after.member_id] = after
        return members

    def _spec(self, members: dict[str, ConsumerMember]) -> AssignorGroup:
        partitions: dict[bytes, int] = {}
        specs: dict[str, AssignorMember] = {}
        for member_id, member in members.items():
            topics = self._subscribed(member, partitions)
            specs[member_id] = AssignorMember(
                member.instance_id, topics, self._present_target(member)
            )
        # As ConsumerGroup.subscriptionType has it: by names or by a regex, but not by both.
        kinds = {(member.topic_names, member.regex) for member in members.values()}
        uniform = len(kinds) == 1 and not any(names and regex for names, regex in kinds)
        return AssignorGroup(specs, uniform, partitions)

    def _present_target(self, member: ConsumerMember) -> Target:
        target = self.targets.get(member.member_id)
        return self.target_of(member) if target is None else target

    def _subscribed(
        self, member: ConsumerMember, partitions: dict[bytes, int] | None = None
    ) -> frozenset[bytes]:
        """The ids of the topics that exist among those a member subscribes to."""
        names = member.topic_names
        resolved = self.resolved.get(member.regex) if member.regex else None
        if resolved is not None:
            names |= resolved.topics
        found = [info for name in names if (info := self.topics.by_name(name)) is not None]
        if partitions is not None:
            partitions.update((info.topic_id, info.partitions) for info in found)
        return frozenset(info.topic_id for info in found)

    # ------------------------------------------------------------------------ 3. reconciliation

    def _reconcile(self, draft: Draft, reported: Reported, now_ms: int) -> None:
        member = draft.after
        if not draft.resubscribed and member.is_reconciled(draft.assignment_epoch):
            return
        inputs = ReconcileInput(
            draft.assignment_epoch,
            draft.target,
            self._subscribed(member),
            self.current_partition_epoch,
            reported,
            draft.resubscribed,
        )
        moved = reconcile(member, inputs)
        if moved is None:
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        if moved == member:
            return
        draft.after = moved
        draft.changes.append(current_change(moved))
        if moved.classic is None:
            due_ms = now_ms + moved.rebalance_timeout_ms
            slow = moved.state is MemberState.UNREVOKED
            draft.timers.append(
                SetTimer(
                    TimerKind.REBALANCE,
                    moved.member_id,
                    due_ms if slow else None,
                    moved.epoch if slow else None,
                )
            )

    # ----------------------------------------------------------------------------- the regexes

    def _on_regexes_resolved(self, resolved: RegexesResolved, _: int) -> None:
        """Write down what regexes stand for; the epoch rises if that is something else now."""
        changes: list[Change] = []
        names = set(self._names)
        rises = False
        for regex in sorted(self.regexes):
            topics = resolved.topics.get(regex)
            old = self.resolved.get(regex)
            if topics is None:
                names |= old.topics if old else frozenset()
                continue
            rises = rises or topics != (old.topics if old else frozenset())
            names |= topics
            entry = ResolvedRegex(topics, resolved.version, resolved.timestamp_ms)
            changes.append(RegexChange(regex, entry))
        new_hash = metadata_hash(self.topics, names)
        if rises or new_hash != self.metadata_hash:
            changes.append(GroupChange(self.epoch + 1, new_hash))
            self._seen_version = self.topics.version
        if changes:
            self._out.append(Store(changes=tuple(changes)))

    def _request_regex_resolution(self, draft: Draft) -> None:
        if draft.refresh:
            self._out.append(ResolveRegexes(draft.refresh))
