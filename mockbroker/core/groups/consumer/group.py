"""A consumer group: its state, and the checks that depend on the state only.

Only a stored change writes the members, epochs and assignments. `machine` handles the events of the
group. Counts and reverse maps are updated with each change, so that a heartbeat costs the same in a
group of 5 and of 5,000.

Source: ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from mockbroker.core.groups.consumer.events import (
    Change,
    CurrentAssignmentChange,
    Effect,
    GroupChange,
    MemberChange,
    RegexChange,
    ResolvedRegex,
    SubscriptionMetadataTombstone,
    TargetAssignmentChange,
    TargetEpochChange,
    removal,
)
from mockbroker.core.groups.consumer.members import (
    NO_EPOCH,
    NO_TARGET,
    ClassicMember,
    ConsumerMember,
    Owned,
)
from mockbroker.core.groups.consumer.records import record_of
from mockbroker.core.groups.consumer.states import (
    DELETE_ANSWERS,
    GROUP_STATES,
    LEAVE_EPOCH,
    MIGRATION_POLICIES,
    GroupFacts,
    GroupState,
    MigrationPolicy,
)
from mockbroker.core.groups.group import CONSUMER, CONSUMER_PROTOCOL_TYPE, commit_timestamp_ms
from mockbroker.core.groups.modern.timers import MemberTimers, SetTimer, TimerKind
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

NONE = ErrorCode.NONE
MEMBER_EPOCH_SINCE = 9  # OffsetCommit
FIRST_EPOCH = 1  # of a group and of its target assignment (TargetAssignmentMetadata.INITIAL)
NO_VERSION = -1


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The group configs of one group (`consumer.session.timeout.ms`, …); their defaults are the
    broker configs (`group.consumer.…`).
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    regex_refresh_interval_ms: int = 600_000
    size_max: int = 2_147_483_647
    classic_size_max: int = 2_147_483_647
    assignors: tuple[str, ...] = ("uniform", "range")
    migration: MigrationPolicy = MIGRATION_POLICIES["bidirectional"]


class Counter(dict[str, int]):
    """The count of each key; keys with count 0 are removed."""

    def count(self, key: str | None, by: int) -> None:
        if key:
            total = self.get(key, 0) + by
            if total:
                self[key] = total
            else:
                self.pop(key, None)


class ConsumerGroup:
    """One group. Other modules only read its attributes."""

    group_type: ClassVar[str] = CONSUMER

    __slots__ = (
        "_partition_epochs",
        "_regex_topics",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "assignors",
        "classic_count",
        "classic_protocols",
        "compared_metadata_version",
        "dead",
        "effects",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "regexes",
        "resolved",
        "settings",
        "static_members",
        "subscribed_topic_names",
        "targets",
        "timers",
        "topics",
    )

    def __init__(self, group_id: str, settings: ConsumerSettings, topics: TopicSource) -> None:
        self.group_id = group_id
        self.settings = settings
        self.topics = topics
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0  # 0: not known, the next assignment need not wait
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.targets: dict[str, Mapping[bytes, frozenset[int]]] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        self.regexes = Counter()  # members by regex
        self.assignors = Counter()  # members by preferred assignor
        self.classic_protocols = Counter()  # classic members by protocol
        self.classic_count = 0
        self.dead = False
        self.subscribed_topic_names = Counter()  # members by topic name
        self._regex_topics = Counter()  # resolved regexes by topic name
        self._partition_epochs: dict[bytes, dict[int, int]] = {}
        # The version of the metadata at the last comparison of the hash.
        self.compared_metadata_version = NO_VERSION
        self.timers = MemberTimers()
        self.effects: list[Effect] = []

    # ----------------------------------------------------------------------------------- queries

    @property
    def state(self) -> GroupState:
        if self.dead:
            return GroupState.DEAD
        reconciled = all(m.is_reconciled(self.assignment_epoch) for m in self.members.values())
        facts = GroupFacts(bool(self.members), self.epoch <= self.assignment_epoch, reconciled)
        return GROUP_STATES[facts]

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    @property
    def protocol(self) -> str | None:
        return self.preferred_assignor()

    @property
    def generation_or_epoch(self) -> int:
        return self.epoch

    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed(self, topic: str) -> bool:
        """Whether some member subscribes to the topic, by name or by a regex."""
        return topic in self.subscribed_topic_names or topic in self._regex_topics

    def subscribed_names(self) -> set[str]:
        return {*self.subscribed_topic_names, *self._regex_topics}

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """The retention of an offset starts with its commit in any state."""
        return commit_timestamp_ms

    def preferred_assignor(self) -> str:
        """The assignor that most members prefer, else the first in group.consumer.assignors."""
        return most_used(self.assignors) or self.settings.assignors[0]

    def current_partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The member epoch of the partition's owner; -1 without an owner."""
        return self._partition_epochs.get(topic_id, {}).get(partition, NO_EPOCH)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: ConsumerMember) -> Mapping[bytes, frozenset[int]]:
        """A member's target; a returned static member has that of the member that it replaces."""
        if member.instance_id is None:
            return self.targets.get(member.member_id, NO_TARGET)
        former = self.static_members.get(member.instance_id)
        return NO_TARGET if former is None else self.targets.get(former, NO_TARGET)

    # ---------------------------------------------------------------------------------- changes

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes that are in the log, in their order."""
        for change in changes:
            _APPLY[type(change)](self, change)

    def _apply_group(self, change: GroupChange) -> None:
        if change.epoch is None:
            self.dead = True
        else:
            self.epoch = change.epoch
            self.metadata_hash = change.metadata_hash

    def _apply_nothing(self, _: SubscriptionMetadataTombstone) -> None:
        pass

    def _apply_member(self, change: MemberChange) -> None:
        old = self.members.get(change.member_id)
        if change.member is None:
            if old is not None:
                del self.members[change.member_id]
                self._update_indexes(old, None)
            return
        # Epochs and partitions have changes of their own.
        base = old or ConsumerMember(member_id=change.member_id)
        new = msgspec.structs.replace(
            change.member,
            epoch=base.epoch,
            previous_epoch=base.previous_epoch,
            state=base.state,
            assigned=base.assigned,
            revoking=base.revoking,
        )
        self.members[change.member_id] = new
        self._update_indexes(old, new)

    def _apply_target_epoch(self, change: TargetEpochChange) -> None:
        self.assignment_epoch = FIRST_EPOCH if change.epoch is None else change.epoch
        self.assignment_timestamp_ms = change.timestamp_ms

    def _apply_target(self, change: TargetAssignmentChange) -> None:
        if change.target is None:
            self.targets.pop(change.member_id, None)
        else:
            self.targets[change.member_id] = change.target

    def _apply_current(self, change: CurrentAssignmentChange) -> None:
        old = self.members.get(change.member_id)
        current = change.current
        if current is None:
            if old is None:
                return
            new = msgspec.structs.replace(
                old, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={}
            )
        else:
            new = msgspec.structs.replace(
                old or ConsumerMember(member_id=change.member_id),
                epoch=current.epoch,
                previous_epoch=current.previous_epoch,
                state=current.state,
                assigned=current.assigned,
                revoking=current.revoking,
            )
        self.members[change.member_id] = new
        self._update_indexes(old, new)

    def _apply_regex(self, change: RegexChange) -> None:
        old = self.resolved.pop(change.regex, None)
        for topic in old.topics if old else ():
            self._regex_topics.count(topic, -1)
        if change.resolved is not None:
            self.resolved[change.regex] = change.resolved
            for topic in change.resolved.topics:
                self._regex_topics.count(topic, 1)

    def _update_indexes(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Bring the counts and reverse maps up to date."""
        if old is not None:
            self._count(old, -1)
            if old.instance_id is not None and (
                self.static_members.get(old.instance_id) == old.member_id
            ):
                del self.static_members[old.instance_id]
            self._remove_partition_epochs(old.assigned, old.epoch)
            self._remove_partition_epochs(old.revoking, old.epoch)
        if new is not None:
            self._count(new, 1)
            if new.instance_id is not None:
                self.static_members[new.instance_id] = new.member_id
            self._add_partition_epochs(new.assigned, new.epoch)
            self._add_partition_epochs(new.revoking, new.epoch)

    def _count(self, member: ConsumerMember, by: int) -> None:
        for name in member.topic_names:
            self.subscribed_topic_names.count(name, by)
        self.regexes.count(member.regex, by)
        self.assignors.count(member.assignor, by)
        if member.classic is not None:
            self.classic_count += by
            for name, _ in member.classic.protocols:
                self.classic_protocols.count(name, by)

    def _remove_partition_epochs(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            epochs = self._partition_epochs.get(topic_id)
            if epochs is None:
                continue
            for partition in partitions:
                # In a compacted log another member may be the owner already.
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                del self._partition_epochs[topic_id]

    def _add_partition_epochs(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            self._partition_epochs.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))

    def request_metadata_refresh(self) -> None:
        """Compare the subscribed topics with the metadata again; the last result was not stored."""
        self.compared_metadata_version = NO_VERSION

    def renew_classic_session(
        self, member: ConsumerMember, classic: ClassicMember, now_ms: int
    ) -> None:
        due_ms = now_ms + classic.session_timeout_ms
        self.timers.set(SetTimer(TimerKind.SESSION, member.member_id, due_ms))

    def tombstones(self) -> tuple[Change, ...]:
        """The changes that remove the group and its members."""
        members = list(self.members)
        changes: list[Change] = []
        changes += (removal(member_id)[0] for member_id in members)
        changes += (TargetAssignmentChange(member_id, None) for member_id in members)
        changes.append(TargetEpochChange(None))
        changes += (MemberChange(member_id, None) for member_id in members)
        changes += (RegexChange(regex, None) for regex in self.resolved)
        changes.append(SubscriptionMetadataTombstone())
        changes.append(GroupChange(None))
        return tuple(changes)

    def tombstone_records(self) -> list[KeyValue]:
        return [record_of(self.group_id, change) for change in self.tombstones()]

    def start_upgraded(self, changes: Iterable[Change], now_ms: int) -> None:
        """Apply the changes of an upgraded classic group, and start the sessions."""
        self.apply(changes)
        for member in self.members.values():
            assert member.classic is not None
            self.renew_classic_session(member, member.classic, now_ms)

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, which may find no timer expired; None without timers."""
        return self.timers.next_ms()

    def extend_deadlines(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the timers of connected members by `by_ms`, because the clock is about to advance;
        also those armed during the advance.
        """
        self.timers.extend(connected, by_ms, now_ms)

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
        """Whether a member may commit offsets. A member with an older epoch may commit for
        partitions that it has owned since that epoch; `check_partition` checks each.
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
        topic: str,  # noqa: ARG002 (partitions are assigned by topic id)
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
        """Whether OffsetFetch may be answered: a request without a member, or with its epoch."""
        if member_id is None and epoch < 0:
            return NONE
        if member_id is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka throws a NullPointerException
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else self._stale(member)

    @staticmethod
    def _stale(member: ConsumerMember, *, transactional: bool = False) -> ErrorCode:
        classic = transactional or member.classic is not None
        return ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH

    def check_delete(self) -> ErrorCode:
        return DELETE_ANSWERS[self.state]

    def check_offset_delete(self) -> ErrorCode:
        """Offsets may be deleted in any state, except those of subscribed topics."""
        return NONE


def most_used(counts: Mapping[str, int]) -> str | None:
    """The key with the highest count; among equals the first in the order of Java's HashMap."""
    return max(hash_order(counts, string_hash), key=counts.__getitem__, default=None)


_APPLY: dict[type, Callable[[ConsumerGroup, Any], None]] = {
    GroupChange: ConsumerGroup._apply_group,
    SubscriptionMetadataTombstone: ConsumerGroup._apply_nothing,
    MemberChange: ConsumerGroup._apply_member,
    TargetEpochChange: ConsumerGroup._apply_target_epoch,
    TargetAssignmentChange: ConsumerGroup._apply_target,
    CurrentAssignmentChange: ConsumerGroup._apply_current,
    RegexChange: ConsumerGroup._apply_regex,
}
