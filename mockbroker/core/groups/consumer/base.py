"""The state of a consumer group, and the only thing that writes it: applying a stored change.

The lowest of five layers of one class: `ConsumerGroupBase` holds the state, `ConsumerGroupSteps`
works out what a heartbeat changes, `ConsumerGroupLeaving` lets members go, `ConsumerGroupClassic`
takes in members of the classic protocol, `ConsumerGroup` takes in events. Each calls only itself
and the layers below.

Counts and reverse maps are kept as changes come in, so that a heartbeat costs the same in a group
of 5 and of 5,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from mockbroker.core.groups.assignors.base import hash_order
from mockbroker.core.groups.consumer.events import (
    Change,
    CurrentChange,
    Effect,
    GroupChange,
    MemberChange,
    RegexChange,
    ResolvedRegex,
    SubscriptionMetadataGone,
    TargetChange,
    TargetEpochChange,
)
from mockbroker.core.groups.consumer.members import NO_EPOCH, NO_TARGET, ConsumerMember, Owned
from mockbroker.core.groups.consumer.states import (
    GROUP_STATES,
    LEAVE_EPOCH,
    MIGRATION_POLICIES,
    GroupFacts,
    GroupState,
    MigrationPolicy,
)
from mockbroker.core.groups.consumer.timers import MemberTimers
from mockbroker.core.groups.consumer.topics import TopicSource
from mockbroker.core.groups.group import CONSUMER, CONSUMER_PROTOCOL_TYPE, commit_age_ms
from mockbroker.core.hashing.java_hash import string_hash

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

FIRST_EPOCH = 1  # of a group and of its target assignment (TargetAssignmentMetadata.INITIAL)
NO_VERSION = -1


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one group: its own group configs
    (`consumer.session.timeout.ms`, …) where it has any, else the brokers' (`group.consumer.…`).
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
    """How often each key is there; those that are not are left out."""

    def count(self, key: str | None, by: int) -> None:
        if key:
            total = self.get(key, 0) + by
            if total:
                self[key] = total
            else:
                self.pop(key, None)


class ConsumerGroupBase:
    """Public attributes are for reading."""

    group_type: ClassVar[str] = CONSUMER

    __slots__ = (
        "_names",
        "_out",
        "_partition_epochs",
        "_regex_topics",
        "_seen_version",
        "_timers",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "assignors",
        "classic_count",
        "classic_protocols",
        "dead",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "regexes",
        "resolved",
        "settings",
        "static",
        "targets",
        "topics",
    )

    def __init__(self, group_id: str, settings: ConsumerSettings, topics: TopicSource) -> None:
        self.group_id = group_id
        self.settings = settings
        self.topics = topics
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0  # 0: not known, the next one need not wait
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}  # instance id -> member id
        self.targets: dict[str, Mapping[bytes, frozenset[int]]] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        self.regexes = Counter()  # members by regex
        self.assignors = Counter()  # members by the assignor they ask for
        self.classic_protocols = Counter()  # classic members by protocol
        self.classic_count = 0
        self.dead = False
        self._names = Counter()  # members by topic name
        self._regex_topics = Counter()  # resolved regexes by topic name
        self._partition_epochs: dict[bytes, dict[int, int]] = {}
        self._seen_version = NO_VERSION  # of the metadata, when the hash was last compared
        self._timers = MemberTimers()
        self._out: list[Effect] = []

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
        return topic in self._names or topic in self._regex_topics

    def subscribed_names(self) -> set[str]:
        return {*self._names, *self._regex_topics}

    def offset_age(self) -> Callable[[OffsetAndMetadata], int] | None:
        """From the commit, whatever became of the group."""
        return commit_age_ms

    def preferred_assignor(self) -> str:
        """The assignor that most members ask for, or the first that the brokers offer."""
        return most_used(self.assignors) or self.settings.assignors[0]

    def current_partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch at which some member owns the partition; -1 when nobody does."""
        return self._partition_epochs.get(topic_id, {}).get(partition, NO_EPOCH)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: ConsumerMember) -> Mapping[bytes, frozenset[int]]:
        """A member's target; a static member that came back has that of its former self."""
        if member.instance_id is None:
            return self.targets.get(member.member_id, NO_TARGET)
        former = self.static.get(member.instance_id)
        return NO_TARGET if former is None else self.targets.get(former, NO_TARGET)

    # ---------------------------------------------------------------------------------- changes

    def apply(self, changes: Iterable[Change]) -> None:
        """Take in changes that are in the log, in their order."""
        for change in changes:
            _APPLY[type(change)](self, change)

    def _apply_group(self, change: GroupChange) -> None:
        if change.epoch is None:
            self.dead = True
        else:
            self.epoch = change.epoch
            self.metadata_hash = change.metadata_hash

    def _apply_nothing(self, _: SubscriptionMetadataGone) -> None:
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

    def _apply_target(self, change: TargetChange) -> None:
        if change.target is None:
            self.targets.pop(change.member_id, None)
        else:
            self.targets[change.member_id] = change.target

    def _apply_current(self, change: CurrentChange) -> None:
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
            if old.instance_id is not None and (self.static.get(old.instance_id) == old.member_id):
                del self.static[old.instance_id]
            self._remove_partition_epochs(old.assigned, old.epoch)
            self._remove_partition_epochs(old.revoking, old.epoch)
        if new is not None:
            self._count(new, 1)
            if new.instance_id is not None:
                self.static[new.instance_id] = new.member_id
            self._add_partition_epochs(new.assigned, new.epoch)
            self._add_partition_epochs(new.revoking, new.epoch)

    def _count(self, member: ConsumerMember, by: int) -> None:
        for name in member.topic_names:
            self._names.count(name, by)
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
                # In a log that was compacted, somebody else may own it by now.
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                del self._partition_epochs[topic_id]

    def _add_partition_epochs(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            self._partition_epochs.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))


def most_used(counts: Mapping[str, int]) -> str | None:
    """The key with the highest count."""
    # Among equals, the first one in the iteration order of Java's HashMap.
    return max(hash_order(counts, string_hash), key=counts.__getitem__, default=None)


_APPLY: dict[type, Callable[[ConsumerGroupBase, Any], None]] = {
    GroupChange: ConsumerGroupBase._apply_group,
    SubscriptionMetadataGone: ConsumerGroupBase._apply_nothing,
    MemberChange: ConsumerGroupBase._apply_member,
    TargetEpochChange: ConsumerGroupBase._apply_target_epoch,
    TargetChange: ConsumerGroupBase._apply_target,
    CurrentChange: ConsumerGroupBase._apply_current,
    RegexChange: ConsumerGroupBase._apply_regex,
}
