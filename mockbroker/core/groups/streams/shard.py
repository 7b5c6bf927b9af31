"""The streams groups of one shard: their requests in, their effects out.

Source: GroupCoordinatorShard and GroupMetadataManager.getOrCreateStreamsGroup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.groups.events import Join, Reply
from mockbroker.core.groups.group import STREAMS, required_members
from mockbroker.core.groups.modern.events import LEAVE_EPOCH, Stored
from mockbroker.core.groups.modern.runner import ModernRunner, Observed, group_ints
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import Assignments, ignore_result
from mockbroker.core.groups.streams.assigning import active_tasks
from mockbroker.core.groups.streams.configured import CreatableTopic, configure
from mockbroker.core.groups.streams.emitters import emit_statuses, emit_tasks
from mockbroker.core.groups.streams.events import Effect, SentTopology, StreamsLeave
from mockbroker.core.groups.streams.group import StreamsGroup, StreamsSettings
from mockbroker.core.groups.streams.machine import handle
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker.core.groups.streams.tasks import Tasks
from mockbroker.core.groups.streams.topology import new_topology
from mockbroker.core.limits import STREAMS_TASKS_MAX
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs


class StreamsGroups(ModernRunner[StreamsGroup, StreamsSettings]):
    """Groups of the streams protocol."""

    __slots__ = ()

    group_type = STREAMS
    group = StreamsGroup

    # ----------------------------------------------------------- requests of the streams protocol

    def missing_topics(self, group_id: str, topology: SentTopology) -> list[CreatableTopic]:
        """The internal topics to create if a member with this topology may join the group now.

        There is none if its heartbeat will be refused, or if the group has another topology.
        """
        group = self.get(group_id)
        if group is not None and group.topology is not None:
            if len(group.members) >= group.settings.size_max:
                return []
        elif group_id in self._shard.groups and not self._replaceable(group_id):
            return []
        try:
            wanted = new_topology(topology.epoch, topology.subtopologies)
            if group is not None and group.topology not in (None, wanted):
                return []
            settings = self.settings(group_id)
            configured = configure(wanted, self._partition_count, settings.tasks_max)
        except ApiError:
            return []
        return list(configured.missing.values())

    def _partition_count(self, topic: str) -> int | None:
        info = self._topics.by_name(topic)
        return None if info is None else info.partitions

    def _replaceable(self, group_id: str) -> bool:
        """Whether the group is an empty classic one, which a streams group may replace."""
        classic = self._shard.classic.get(group_id)
        return classic is not None and classic.is_empty()

    def new_group(self, group_id: str, preceding: list[KeyValue]) -> StreamsGroup:
        classic = self._shard.classic.get(group_id)
        if group_id in self._shard.groups and not self._replaceable(group_id):
            raise self.not_found(group_id, "")
        if classic is not None:
            preceding += classic.tombstone_records()
        return self._empty_group(group_id)

    @staticmethod
    def refusal(error: ErrorCode, message: str | None) -> StreamsResult:
        return StreamsResult(error=error, message=message)

    # ----------------------------------------------------------- requests of the classic protocol

    def join(self, group: StreamsGroup, join: Join) -> None:
        """JoinGroup. A classic group replaces an empty group."""
        if group.is_empty():
            self.replace_by_classic(group, join)
        else:
            super().join(group, join)

    # ------------------------------------------------------------------------------------ settings

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> StreamsSettings:
        return StreamsSettings(
            **group_ints(
                configs,
                group_id,
                "streams",
                "session_timeout_ms",
                "heartbeat_interval_ms",
                "initial_rebalance_delay_ms",
                "assignment_interval_ms",
            ),
            **group_ints(configs, group_id, "streams.num", "standby_replicas"),
            size_max=configs.get_int("group.streams.max.size"),
            tasks_max=configs.get_int(STREAMS_TASKS_MAX),
        )

    # ------------------------------------------------------------------------------------- actions

    def expire(self, group: StreamsGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            leave = StreamsLeave(callback=ignore_result, member_id=member_id, epoch=LEAVE_EPOCH)
            self.member_leave(group.group_id, leave)

    def kick(self, group: StreamsGroup, member_ids: Sequence[str]) -> None:
        """As in Kafka, an administrator removes members of classic and consumer groups only."""
        raise ActionError(
            f"group {group.group_id!r} is a streams group, from which an administrator cannot "
            f"remove members; use expire_member for {', '.join(member_ids)}"
        )

    def fence_instance(self, group: StreamsGroup, instance_id: str) -> None:
        raise ActionError(
            f"group {group.group_id!r} has no static member {instance_id!r}: it is a streams group"
        )

    def assign(self, group: StreamsGroup, assignments: Assignments) -> None:
        """The tasks of a member are those that read one of its partitions."""
        targets: dict[str, Tasks] = {}
        for pattern, topics in assignments.items():
            active = active_tasks(group, topics)
            for member_id in required_members(group, pattern):
                copies = group.target_of(member_id)
                targets[member_id] = Tasks(active, copies.standby, copies.warmup)
        self.store_targets(group, targets)

    # -------------------------------------------------------------------------- events and effects

    def _handle(self, group: StreamsGroup, event: object) -> list[Effect]:
        before = group.configured
        effects = handle(group, event, self._shard.now_ms(group.group_id))
        if group.configured is not before:
            # Kafka counts a topology as configured before the write: what was written follows it.
            written = isinstance(event, Stored)
            group.configured_offset = -1 if written else self._shard.partition.log_end_offset
        return effects

    def _reply(self, group: StreamsGroup, reply: Reply) -> None:
        if self._runtime.on_event:
            emit_statuses(self._runtime, self._node_id, group.group_id, reply.result)
        super()._reply(group, reply)

    def _observed(self, group: StreamsGroup) -> Observed:
        return Observed(group.state, group.epoch, group.members.copy())

    def _emit(self, group: StreamsGroup, before: Observed) -> None:
        members = group.members
        emit_tasks(self._runtime, self._node_id, group.group_id, before.members, members)
        super()._emit(group, before)
