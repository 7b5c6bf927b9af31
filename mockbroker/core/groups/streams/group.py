"""A streams group: its state, and the checks that depend on the state only.

Source: StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mockbroker.core.groups.group import STREAMS
from mockbroker.core.groups.modern.events import GroupChange as ModernGroupChange
from mockbroker.core.groups.modern.events import Store, StoredChange
from mockbroker.core.groups.modern.group import (
    APPLIERS,
    MEMBER_EPOCH_SINCE,
    NO_VERSION,
    ModernGroup,
)
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.streams.configured import ConfiguredTopology
from mockbroker.core.groups.streams.events import (
    Effect,
    GroupChange,
    StreamsStore,
    TopologyChange,
)
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.owners import TaskOwners
from mockbroker.core.groups.streams.records import RECORD_TYPES
from mockbroker.core.groups.streams.states import (
    DELETE_ANSWERS,
    GROUP_STATES,
    GroupFacts,
    MemberState,
    StreamsGroupState,
)
from mockbroker.core.groups.streams.tasks import NO_TASKS, NOTHING_OWNED, Tasks
from mockbroker.core.groups.streams.topology import Topology
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE


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
    tasks_max: int = 50_000

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The configs of the assignor; a change raises the group epoch."""
        return {"num.standby.replicas": str(self.standby_replicas)}


class StreamsGroup(ModernGroup[StreamsSettings, StreamsMember, Tasks, Effect]):
    """One group. Some state is not in the log and is lost when the coordinator moves, as in Kafka:
    the configured topology, the endpoint epoch, a requested shutdown and the initial rebalance
    delay.
    """

    group_type = STREAMS
    record_types = RECORD_TYPES
    nothing_owned = NOTHING_OWNED

    __slots__ = (
        "assignment_configs",
        "configured",
        "configured_offset",
        "endpoint_epoch",
        "initial_delay_until_ms",
        "lost_topics",
        "owners",
        "shutdown_by",
        "stale_members",
        "topology",
        "validated_epoch",
    )

    def __init__(self, group_id: str, settings: StreamsSettings, topics: TopicSource) -> None:
        super().__init__(group_id, settings, topics)
        self.validated_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.topology: Topology | None = None
        self.owners = TaskOwners()
        # Not in the log.
        self.configured: ConfiguredTopology | None = None
        self.configured_offset = -1  # the log end offset when it was set
        self.endpoint_epoch = 0
        self.shutdown_by: str | None = None  # the member that requested a shutdown
        self.initial_delay_until_ms: int | None = None
        # Of actions; not in the log either.
        self.stale_members: set[str] = set()  # told that their topology is stale
        self.lost_topics: set[str] = set()  # internal topics that the group must not see

    # ----------------------------------------------------------------------------------- queries

    @property
    def state(self) -> StreamsGroupState:
        if self.dead:
            return StreamsGroupState.DEAD
        return GROUP_STATES[
            GroupFacts(
                bool(self.members),
                self.topology is not None and self.topology.epoch == self.validated_epoch,
                self.epoch <= self.assignment_epoch,
                all(each.is_reconciled(self.assignment_epoch) for each in self.members.values()),
            )
        ]

    @property
    def protocol(self) -> str:
        return "sticky"

    def is_subscribed(self, topic: str) -> bool:
        """Whether the application reads the topic, while the group has members."""
        if self.dead or not self.members or self.topology is None:
            return False
        return topic in self.topology.subtopology_of

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

    def on_stored(self, store: Store, *, created: bool) -> None:
        """A group that is new in the log begins without what is not in the log, except timers:
        Kafka makes a new group object from its first records.
        """
        if created:
            self.configured = None
            self.compared_metadata_version = NO_VERSION
            self.endpoint_epoch = 0
            self.shutdown_by = None
        elif isinstance(store, StreamsStore):
            if store.unstored.configured is not None:
                self.configured = store.unstored.configured
            if store.unstored.compared_version is not None:
                self.compared_metadata_version = store.unstored.compared_version

    def apply_group(self, change: ModernGroupChange) -> None:
        super().apply_group(change)
        if isinstance(change, GroupChange) and change.epoch is not None:
            self.validated_epoch = change.validated_epoch
            self.assignment_configs = change.configs

    def next_epoch(self) -> GroupChange:
        return GroupChange(
            self.epoch + 1, self.metadata_hash, self.validated_epoch, self.assignment_configs
        )

    def _apply_topology(self, change: TopologyChange) -> None:
        self.topology = change.topology

    def new_member(self, member_id: str) -> StreamsMember:
        return StreamsMember(member_id=member_id)

    def put_member(self, old: StreamsMember | None, new: StreamsMember) -> None:
        self.members[new.member_id] = new
        if old is not None:
            self.owners.remove(old)
        self.owners.add(new)

    def remove_member(self, old: StreamsMember) -> None:
        del self.members[old.member_id]
        self.owners.remove(old)
        self.stale_members.discard(old.member_id)
        if not self.members:
            self.shutdown_by = None

    def target_of(self, member_id: str) -> Tasks:
        return self.targets.get(member_id, NO_TASKS)

    def lose_topic(self, topic: str, *, lost: bool) -> None:
        """Let the group see an internal topic no longer, or again."""
        (self.lost_topics.add if lost else self.lost_topics.discard)(topic)
        self.configured = None  # the next heartbeat compares the topics again

    def last_tombstones(self) -> tuple[StoredChange, ...]:
        return (GroupChange(None), TopologyChange(None))

    def must_revoke(self, member: StreamsMember) -> bool:
        return member.state is MemberState.UNREVOKED

    def deadline_ms(self) -> int | None:
        due = (self.timers.next_ms(), self.initial_delay_until_ms)
        return min((each for each in due if each is not None), default=None)

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
            return self.stale_epoch(member, transactional=transactional)
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
            return self.stale_epoch(member, transactional=transactional)
        return NONE

    def check_delete(self) -> ErrorCode:
        return DELETE_ANSWERS[self.state]


StreamsGroup.appliers = {
    **APPLIERS,
    GroupChange: StreamsGroup.apply_group,
    TopologyChange: StreamsGroup._apply_topology,
}
