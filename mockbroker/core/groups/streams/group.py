"""A streams group: its state, and the checks that depend on the state only.

Only a stored change writes members, epochs, topology and assignments. `machine` handles the events
of the group. Some state is not in the log and is lost when the coordinator moves, as in Kafka: the
configured topology, the endpoint epoch, a requested shutdown and the initial rebalance delay.

Source: StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from mockbroker.core.groups.group import STREAMS, commit_timestamp_ms
from mockbroker.core.groups.modern.timers import MemberTimers
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.streams.configured import ConfiguredTopology
from mockbroker.core.groups.streams.events import (
    Change,
    CurrentAssignmentChange,
    Effect,
    GroupChange,
    MemberChange,
    TargetAssignmentChange,
    TargetEpochChange,
    TopologyChange,
    Unstored,
)
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.owners import TaskOwners
from mockbroker.core.groups.streams.records import record_of
from mockbroker.core.groups.streams.states import (
    DELETE_ANSWERS,
    GROUP_STATES,
    LEAVE_EPOCH,
    GroupFacts,
    GroupState,
)
from mockbroker.core.groups.streams.tasks import NO_TASKS, NOTHING_OWNED, Tasks
from mockbroker.core.groups.streams.topology import Topology
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

NONE = ErrorCode.NONE
PROTOCOL_TYPE = "streams"
ASSIGNOR = "sticky"
MEMBER_EPOCH_SINCE = 9  # OffsetCommit
FIRST_EPOCH = 1  # of a group and of its target assignment (TargetAssignmentMetadata.INITIAL)
NO_ASSIGNMENT = -1  # the assignment epoch after its tombstone
NO_VERSION = -1


class StreamsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The group configs of one group (`streams.session.timeout.ms`, …); their defaults are the
    broker configs (`group.streams.…`).
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000
    standby_replicas: int = 0
    size_max: int = 2_147_483_647

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The configs of the assignor; a change raises the group epoch."""
        return {"num.standby.replicas": str(self.standby_replicas)}


class StreamsGroup:
    """One group. Other modules only read its attributes."""

    group_type: ClassVar[str] = STREAMS

    __slots__ = (
        "assignment_configs",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "compared_version",
        "configured",
        "configured_offset",
        "dead",
        "effects",
        "endpoint_epoch",
        "epoch",
        "group_id",
        "initial_delay_until_ms",
        "lost_topics",
        "members",
        "metadata_hash",
        "owners",
        "settings",
        "shutdown_by",
        "stale_members",
        "targets",
        "timers",
        "topics",
        "topology",
        "validated_epoch",
    )

    def __init__(self, group_id: str, settings: StreamsSettings, topics: TopicSource) -> None:
        self.group_id = group_id
        self.settings = settings
        self.topics = topics
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0  # 0: not known, the next assignment need not wait
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, Tasks] = {}
        self.owners = TaskOwners()
        self.dead = False
        self.timers = MemberTimers()
        self.effects: list[Effect] = []
        # Not in the log.
        self.configured: ConfiguredTopology | None = None
        self.configured_offset = -1  # the log end offset when it was set
        self.compared_version = NO_VERSION  # of the metadata, at the last comparison of the hash
        self.endpoint_epoch = 0
        self.shutdown_by: str | None = None  # the member that requested a shutdown
        self.initial_delay_until_ms: int | None = None
        # Of actions; not in the log either.
        self.stale_members: set[str] = set()  # told that their topology is stale
        self.lost_topics: set[str] = set()  # internal topics that the group must not see

    # ----------------------------------------------------------------------------------- queries

    @property
    def state(self) -> GroupState:
        if self.dead:
            return GroupState.DEAD
        return GROUP_STATES[
            GroupFacts(
                bool(self.members),
                self.topology is not None and self.topology.epoch == self.validated_epoch,
                self.epoch <= self.assignment_epoch,
                all(each.is_reconciled(self.assignment_epoch) for each in self.members.values()),
            )
        ]

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def protocol(self) -> str | None:
        return ASSIGNOR

    @property
    def generation_or_epoch(self) -> int:
        return self.epoch

    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed(self, topic: str) -> bool:
        """Whether the application reads the topic, while the group has members."""
        if self.dead or not self.members or self.topology is None:
            return False
        return topic in self.topology.subtopology_of

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """The retention of an offset starts with its commit in any state."""
        return commit_timestamp_ms

    def described_topology(self, log_end_offset: int) -> ConfiguredTopology | None:
        """The configured topology, if it is ready and something was written since it was set.

        Kafka describes groups as of the last record of the partition (TimelineObject).
        """
        configured = self.configured
        if configured is None or log_end_offset <= self.configured_offset:
            return None
        return configured if configured.is_ready else None

    def partition_count(self, topic: str) -> int | None:
        """The number of partitions of a topic; None if it does not exist, or an action has lost it
        for the group.
        """
        if topic in self.lost_topics:
            return None
        info = self.topics.by_name(topic)
        return None if info is None else info.partitions

    def partitions_of(self, member: StreamsMember) -> dict[str, list[int]]:
        """The partitions that a member's active tasks read, by topic."""
        found: dict[str, list[int]] = {}
        topology = self.topology
        for subtopology_id, epochs in member.assigned.active.items():
            subtopology = None if topology is None else topology.by_id.get(subtopology_id)
            for topic in () if subtopology is None else subtopology.read_topics():
                count = self.partition_count(topic) or 0
                found[topic] = sorted(each for each in epochs if each < count)
        return found

    # ---------------------------------------------------------------------------------- changes

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes that are in the log, in their order."""
        for change in changes:
            _APPLY[type(change)](self, change)

    def forget_unstored(self) -> None:
        """Drop the state that is not in the log, except timers: Kafka makes a new group object from
        the first records of a group.
        """
        self.configured = None
        self.compared_version = NO_VERSION
        self.endpoint_epoch = 0
        self.shutdown_by = None

    def apply_unstored(self, unstored: Unstored) -> None:
        if unstored.configured is not None:
            self.configured = unstored.configured
        if unstored.compared_version is not None:
            self.compared_version = unstored.compared_version

    def _apply_group(self, change: GroupChange) -> None:
        if change.epoch is None:
            self.dead = True
            return
        self.epoch = change.epoch
        self.metadata_hash = change.metadata_hash
        self.validated_epoch = change.validated_epoch
        self.assignment_configs = change.configs

    def _apply_topology(self, change: TopologyChange) -> None:
        self.topology = change.topology

    def _apply_member(self, change: MemberChange) -> None:
        old = self.members.get(change.member_id)
        if change.member is None:
            if old is not None:
                del self.members[change.member_id]
                self.owners.remove(old)
            self.stale_members.discard(change.member_id)
            if not self.members:
                self.shutdown_by = None
            return
        # Epochs and tasks have changes of their own.
        base = old or StreamsMember(member_id=change.member_id)
        self._put(
            old,
            msgspec.structs.replace(
                change.member,
                epoch=base.epoch,
                previous_epoch=base.previous_epoch,
                state=base.state,
                assigned=base.assigned,
                revoking=base.revoking,
            ),
        )

    def _apply_target_epoch(self, change: TargetEpochChange) -> None:
        self.assignment_epoch = NO_ASSIGNMENT if change.epoch is None else change.epoch
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
            if old is not None:
                gone = msgspec.structs.replace(
                    old,
                    epoch=LEAVE_EPOCH,
                    previous_epoch=LEAVE_EPOCH,
                    assigned=NOTHING_OWNED,
                    revoking=NOTHING_OWNED,
                )
                self._put(old, gone)
            return
        self._put(
            old,
            msgspec.structs.replace(
                old or StreamsMember(member_id=change.member_id),
                epoch=current.epoch,
                previous_epoch=current.previous_epoch,
                state=current.state,
                assigned=current.assigned,
                revoking=current.revoking,
            ),
        )

    def _put(self, old: StreamsMember | None, new: StreamsMember) -> None:
        self.members[new.member_id] = new
        if old is not None:
            self.owners.remove(old)
        self.owners.add(new)

    def target_of(self, member_id: str) -> Tasks:
        return self.targets.get(member_id, NO_TASKS)

    def lose_topic(self, topic: str, *, lost: bool) -> None:
        """Let the group see an internal topic no longer, or again."""
        (self.lost_topics.add if lost else self.lost_topics.discard)(topic)
        self.configured = None  # the next heartbeat compares the topics again

    def request_metadata_refresh(self) -> None:
        """Compare the required topics with the metadata again; the last result was not stored."""
        self.compared_version = NO_VERSION

    def tombstones(self) -> tuple[Change, ...]:
        """The changes that remove the group and its members."""
        members = list(self.members)
        changes: list[Change] = []
        changes += (CurrentAssignmentChange(each, None) for each in members)
        changes += (TargetAssignmentChange(each, None) for each in members)
        changes.append(TargetEpochChange(None))
        changes += (MemberChange(each, None) for each in members)
        changes += (GroupChange(None), TopologyChange(None))
        return tuple(changes)

    def tombstone_records(self) -> list[KeyValue]:
        return [record_of(self.group_id, change) for change in self.tombstones()]

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, which may find no timer expired; None without timers."""
        due = (self.timers.next_ms(), self.initial_delay_until_ms)
        return min((each for each in due if each is not None), default=None)

    def extend_deadlines(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the timers of connected members by `by_ms`, because the clock is about to advance;
        also those armed during the advance.
        """
        self.timers.extend(connected, by_ms, now_ms)

    # ----------------------------------------------------------------------------------- checks

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
        """Whether a member may commit offsets. A member with an older epoch may commit for active
        tasks that it has owned since that epoch; `check_partition` checks each.
        """
        if epoch < 0 and not self.members:
            return NONE
        if transactional and epoch == -1 and not member_id and instance_id is None:
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and version < MEMBER_EPOCH_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch > member.epoch or (epoch < member.epoch and self.topology is None):
            return _stale(transactional=transactional)
        return NONE

    def check_partition(
        self,
        member_id: str,
        epoch: int,
        topic: str,
        topic_id: bytes,  # noqa: ARG002 (a topology names its topics)
        partition: int,
        *,
        transactional: bool = False,
    ) -> ErrorCode:
        """Whether a member may commit for one partition: one that an active task of it reads."""
        member = self.members.get(member_id)
        if member is None or epoch == member.epoch or self.topology is None:
            return NONE
        subtopology = self.topology.subtopology_of.get(topic)
        owned_since = (
            None
            if subtopology is None
            else member.assignment_epoch_of(subtopology.subtopology_id, partition)
        )
        if owned_since is None or epoch < owned_since:
            return _stale(transactional=transactional)
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
        return NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def check_delete(self) -> ErrorCode:
        return DELETE_ANSWERS[self.state]

    def check_offset_delete(self) -> ErrorCode:
        """Offsets may be deleted in any state, except those of subscribed topics."""
        return NONE


def _stale(*, transactional: bool) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if transactional else ErrorCode.STALE_MEMBER_EPOCH


_APPLY: dict[type, Callable[[StreamsGroup, Any], None]] = {
    GroupChange: StreamsGroup._apply_group,
    TopologyChange: StreamsGroup._apply_topology,
    MemberChange: StreamsGroup._apply_member,
    TargetEpochChange: StreamsGroup._apply_target_epoch,
    TargetAssignmentChange: StreamsGroup._apply_target,
    CurrentAssignmentChange: StreamsGroup._apply_current,
}
