"""A consumer group: its state, and the checks that depend on the state only.

Source: ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from mockbroker.core.groups.consumer.events import (
    Effect,
    RegexChange,
    ResolvedRegex,
    SubscriptionMetadataTombstone,
)
from mockbroker.core.groups.consumer.members import (
    NO_EPOCH,
    NO_TARGET,
    ClassicMember,
    ConsumerMember,
    Owned,
)
from mockbroker.core.groups.consumer.records import RECORD_TYPES
from mockbroker.core.groups.consumer.states import (
    DELETE_ANSWERS,
    GROUP_STATES,
    MIGRATION_POLICIES,
    ConsumerGroupState,
    GroupFacts,
    MemberState,
    MigrationPolicy,
)
from mockbroker.core.groups.group import CONSUMER
from mockbroker.core.groups.modern.events import GroupChange, StoredChange
from mockbroker.core.groups.modern.group import (
    APPLIERS,
    FIRST_EPOCH,
    MEMBER_EPOCH_SINCE,
    ModernGroup,
)
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE


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


class ConsumerGroup(
    ModernGroup[ConsumerSettings, ConsumerMember, Mapping[bytes, frozenset[int]], Effect]
):
    """One group. Counts and reverse maps are updated with each change, so that a heartbeat costs
    the same in a group of 5 and of 5,000.
    """

    group_type = CONSUMER
    record_types = RECORD_TYPES
    no_assignment_epoch = FIRST_EPOCH

    __slots__ = (
        "_partition_epochs",
        "_regex_topics",
        "assignors",
        "classic_count",
        "classic_protocols",
        "regexes",
        "resolved",
        "static_members",
        "subscribed_topic_names",
    )

    def __init__(self, group_id: str, settings: ConsumerSettings, topics: TopicSource) -> None:
        super().__init__(group_id, settings, topics)
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.resolved: dict[str, ResolvedRegex] = {}
        self.regexes = Counter()  # members by regex
        self.assignors = Counter()  # members by preferred assignor
        self.classic_protocols = Counter()  # classic members by protocol
        self.classic_count = 0
        self.subscribed_topic_names = Counter()  # members by topic name
        self._regex_topics = Counter()  # resolved regexes by topic name
        self._partition_epochs: dict[bytes, dict[int, int]] = {}

    # ----------------------------------------------------------------------------------- queries

    @property
    def state(self) -> ConsumerGroupState:
        if self.dead:
            return ConsumerGroupState.DEAD
        reconciled = all(m.is_reconciled(self.assignment_epoch) for m in self.members.values())
        facts = GroupFacts(bool(self.members), self.epoch <= self.assignment_epoch, reconciled)
        return GROUP_STATES[facts]

    @property
    def protocol(self) -> str:
        return self.preferred_assignor()

    def is_subscribed(self, topic: str) -> bool:
        """Whether some member subscribes to the topic, by name or by a regex."""
        return topic in self.subscribed_topic_names or topic in self._regex_topics

    def subscribed_names(self) -> set[str]:
        return {*self.subscribed_topic_names, *self._regex_topics}

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

    def new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id=member_id)

    def put_member(self, old: ConsumerMember | None, new: ConsumerMember) -> None:
        self.members[new.member_id] = new
        self._update_indexes(old, new)

    def remove_member(self, old: ConsumerMember) -> None:
        del self.members[old.member_id]
        self._update_indexes(old, None)

    def _apply_nothing(self, _: SubscriptionMetadataTombstone) -> None:
        pass

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

    def renew_classic_session(
        self, member: ConsumerMember, classic: ClassicMember, now_ms: int
    ) -> None:
        due_ms = now_ms + classic.session_timeout_ms
        self.timers.set(SetTimer(TimerKind.SESSION, member.member_id, due_ms))

    def last_tombstones(self) -> tuple[StoredChange, ...]:
        return (
            *(RegexChange(regex, None) for regex in self.resolved),
            SubscriptionMetadataTombstone(),
            GroupChange(None),
        )

    def start_upgraded(self, changes: Iterable[StoredChange], now_ms: int) -> None:
        """Apply the changes of an upgraded classic group, and start the sessions."""
        self.apply(changes)
        for member in self.members.values():
            assert member.classic is not None
            self.renew_classic_session(member, member.classic, now_ms)

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
            return self.stale_epoch(member, transactional=transactional)
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
            return self.stale_epoch(member, transactional=transactional)
        return NONE

    def stale_epoch(self, member: ConsumerMember, *, transactional: bool) -> ErrorCode:
        classic = transactional or member.classic is not None
        return super().stale_epoch(member, transactional=classic)

    def must_revoke(self, member: ConsumerMember) -> bool:
        return member.state is MemberState.UNREVOKED

    def check_delete(self) -> ErrorCode:
        return DELETE_ANSWERS[self.state]


def most_used(counts: Mapping[str, int]) -> str | None:
    """The key with the highest count; among equals the first in the order of Java's HashMap."""
    return max(hash_order(counts, string_hash), key=counts.__getitem__, default=None)


ConsumerGroup.appliers = {
    **APPLIERS,
    SubscriptionMetadataTombstone: ConsumerGroup._apply_nothing,
    RegexChange: ConsumerGroup._apply_regex,
}
