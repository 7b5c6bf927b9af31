"""The streams groups of one shard: their requests in, their effects out.

A request is passed to the group's state machine. Its changes are appended to the shard's partition
as one batch, then applied, then answered. The first batch creates the group; if it replaces an
empty classic group, it begins with the tombstone of that.

Source: GroupCoordinatorShard and GroupMetadataManager.getOrCreateStreamsGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.groups.emitters import emit_moved
from mockbroker.core.groups.events import Join, Reply, Unload
from mockbroker.core.groups.group import STREAMS, required_members
from mockbroker.core.groups.modern.runner import ModernRunner
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import Assignments, ignore_result
from mockbroker.core.groups.streams.assigning import active_tasks
from mockbroker.core.groups.streams.configured import CreatableTopic, configure
from mockbroker.core.groups.streams.emitters import emit_statuses, emit_tasks
from mockbroker.core.groups.streams.events import (
    Change,
    Effect,
    GroupChange,
    SentTopology,
    Store,
    Stored,
    StreamsHeartbeat,
    StreamsLeave,
    TargetAssignmentChange,
    TargetEpochChange,
    is_tombstone,
)
from mockbroker.core.groups.streams.group import StreamsGroup, StreamsSettings
from mockbroker.core.groups.streams.machine import handle
from mockbroker.core.groups.streams.records import parse, record_of
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker.core.groups.streams.states import JOIN_EPOCH, LEAVE_EPOCH
from mockbroker.core.groups.streams.tasks import Tasks
from mockbroker.core.groups.streams.topology import new_topology
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker_protocol.records import Record

NONE = ErrorCode.NONE


class StreamsGroups(ModernRunner[StreamsGroup, StreamsSettings]):
    """Groups of the streams protocol."""

    __slots__ = ()

    group_type = STREAMS

    # ----------------------------------------------------------- requests of the streams protocol

    def streams_heartbeat(self, group_id: str, heartbeat: StreamsHeartbeat) -> None:
        """StreamsGroupHeartbeat of a member that joins or stays; a first member creates the
        group.
        """
        preceding: list[KeyValue] = []
        try:
            group = self.get(group_id)
            if group is None:
                if heartbeat.epoch != JOIN_EPOCH:
                    raise self._not_found(group_id, f"Streams group {group_id} not found.")
                group = self._new(group_id, preceding)
        except ApiError as refused:
            self._refuse(heartbeat.callback, refused)
        else:
            self._run(group, heartbeat, preceding)

    def streams_leave(self, group_id: str, leave: StreamsLeave) -> None:
        """StreamsGroupHeartbeat of a member that leaves."""
        group = self.get(group_id)
        if group is None:
            self._refuse(leave.callback, self._not_found(group_id, f"Group {group_id} not found."))
        else:
            self.run(group, leave)

    def missing_topics(self, group_id: str, topology: SentTopology) -> list[CreatableTopic]:
        """The internal topics to create if a member with this topology may join the group now.

        There is none if its heartbeat will be refused, or if the group has another topology.
        """
        group = self.get(group_id)
        if group is not None and group.topology is not None:
            if group.topology.epoch != topology.epoch:
                return []
            if len(group.members) >= group.settings.size_max:
                return []
        elif group_id in self._shard.groups and not self._replaceable(group_id):
            return []
        try:
            wanted = new_topology(topology.epoch, topology.subtopologies)
            if group is not None and group.topology not in (None, wanted):
                return []
            configured = configure(wanted, self._partition_count)
        except ApiError:
            return []
        return list(configured.missing.values())

    def _partition_count(self, topic: str) -> int | None:
        info = self._topics.by_name(topic)
        return None if info is None else info.partitions

    def _not_found(self, group_id: str, message: str) -> ApiError:
        """The error for a group that does not exist, with `message`, or has another type."""
        if group_id in self._shard.groups:
            message = f"Group {group_id} is not a streams group."
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def _replaceable(self, group_id: str) -> bool:
        """Whether the group is an empty classic one, which a streams group may replace."""
        classic = self._shard.classic.get(group_id)
        return classic is not None and classic.is_empty()

    def _new(self, group_id: str, preceding: list[KeyValue]) -> StreamsGroup:
        """A new group. The tombstone of an empty classic group is added to `preceding`.

        Raises ApiError if another group has this id.
        """
        classic = self._shard.classic.get(group_id)
        if group_id in self._shard.groups and not self._replaceable(group_id):
            raise self._not_found(group_id, "")
        if classic is not None:
            preceding += classic.tombstone_records()
        return StreamsGroup(group_id, self.settings(group_id), self._topics)

    def _refuse(self, callback: object, refused: ApiError) -> None:
        result = StreamsResult(error=refused.error, message=refused.message)
        self._shard.answer(callback, result)

    # ----------------------------------------------------------- requests of the classic protocol

    def join(self, group: StreamsGroup, join: Join) -> None:
        """JoinGroup. A classic group replaces an empty group."""
        if group.is_empty():
            self.replace_by_classic(group, join)
        else:
            super().join(group, join)

    # -------------------------------------------------------------------------------- whole groups

    def unload(self, group: StreamsGroup) -> None:
        handle(group, Unload(), self._shard.now_ms(group.group_id))  # no request waits

    def on_deleted(self, group: StreamsGroup) -> None:
        handle(group, Unload(), self._shard.now_ms(group.group_id))

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> StreamsSettings:
        def own(name: str) -> int:
            value = configs.group_value(group_id, name)
            assert isinstance(value, int)
            return value

        return StreamsSettings(
            session_timeout_ms=own("streams.session.timeout.ms"),
            heartbeat_interval_ms=own("streams.heartbeat.interval.ms"),
            initial_rebalance_delay_ms=own("streams.initial.rebalance.delay.ms"),
            assignment_interval_ms=own("streams.assignment.interval.ms"),
            standby_replicas=own("streams.num.standby.replicas"),
            size_max=configs.get_int("group.streams.max.size"),
        )

    # ------------------------------------------------------------------------------------- loading

    def replay_record(self, record: Record, now_ms: int) -> None:  # noqa: ARG002
        """Apply a change from the log. A change that is no tombstone creates the group."""
        stored = parse(record)
        assert stored is not None
        group_id, change = stored.group_id, stored.change
        group = self.get(group_id)
        if group is None:
            if is_tombstone(change):
                return
            # It replaces the simple group that the offsets of this group have created.
            group = StreamsGroup(group_id, self.settings(group_id), self._topics)
            self._shard.put_group(group)
        group.apply((change,))
        if isinstance(change, GroupChange) and group.dead:
            self._shard.remove_group(group_id)

    # ------------------------------------------------------------------------------------- actions

    def rebalance(self, group: StreamsGroup) -> None:
        self._store_changes(group, (self._next_epoch(group),))

    def expire(self, group: StreamsGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            leave = StreamsLeave(callback=ignore_result, member_id=member_id, epoch=LEAVE_EPOCH)
            self.streams_leave(group.group_id, leave)

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
        self.assign_targets(group, targets)

    def assign_targets(self, group: StreamsGroup, targets: Mapping[str, Tasks]) -> None:
        """Override the targets of some members; without any, the assignor runs again."""
        change = self._next_epoch(group)
        assert change.epoch is not None
        changes: list[Change] = [change]
        changes += (TargetAssignmentChange(*each) for each in targets.items())
        if targets:
            changes.append(TargetEpochChange(change.epoch, self._runtime.now_ms()))
        self._store_changes(group, tuple(changes))

    def _next_epoch(self, group: StreamsGroup) -> GroupChange:
        return GroupChange(
            group.epoch + 1, group.metadata_hash, group.validated_epoch, group.assignment_configs
        )

    def _store_changes(self, group: StreamsGroup, changes: tuple[Change, ...]) -> None:
        """Store and apply the changes of an action."""
        self._apply(group, [Store(changes=changes)])
        self._shard.rearm(group)

    # -------------------------------------------------------------------------- events and effects

    def run(self, group: StreamsGroup, event: object) -> None:
        self._run(group, event, ())

    def _run(self, group: StreamsGroup, event: object, preceding: Iterable[KeyValue]) -> None:
        """Handle an event. The records in `preceding` are stored before those of the group."""
        shard = self._shard
        shard.mark_changed()
        group.settings = self.settings(group.group_id)
        effects = self._handle(group, event)
        self._apply(group, effects, preceding)
        if shard.groups.get(group.group_id) is group:
            shard.rearm(group)

    def _handle(
        self, group: StreamsGroup, event: object, log_end_offset: int | None = None
    ) -> list[Effect]:
        """The effects of an event; `log_end_offset` is that before the write of a Stored event."""
        shard, before = self._shard, group.configured
        if log_end_offset is None:
            log_end_offset = shard.partition.log_end_offset
        effects = handle(group, event, shard.now_ms(group.group_id))
        if group.configured is not before:
            group.configured_offset = log_end_offset
        return effects

    def _apply(
        self, group: StreamsGroup, effects: list[Effect], preceding: Iterable[KeyValue] = ()
    ) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                if self._runtime.on_event:
                    emit_statuses(self._runtime, self._node_id, group.group_id, effect.result)
                self._shard.answer(effect.callback, effect.result)
            else:
                self._store(group, effect, preceding)

    def _store(self, group: StreamsGroup, store: Store, preceding: Iterable[KeyValue]) -> None:
        shard, group_id = self._shard, group.group_id
        log_end_offset = shard.partition.log_end_offset
        records = [*preceding, *(record_of(group_id, change) for change in store.changes)]
        former = (group.state, group.epoch) if self._runtime.on_event else None
        members = group.members.copy() if former is not None else {}
        error, _ = shard.append(records)
        created = error is NONE and shard.groups.get(group_id) is not group
        if created:
            classic = shard.classic.get(group_id)
            if classic is not None:
                shard.classic.unload_upgraded(classic)
            shard.put_group(group)
        self._apply(group, self._handle(group, Stored(store, error, created), log_end_offset))
        if former is not None:
            emit_tasks(self._runtime, self._node_id, group_id, members, group.members)
            if former != (group.state, group.epoch):
                emit_moved(
                    self._runtime, self._node_id, group, former[0].value, group.state_name,
                    group.epoch,
                )  # fmt: skip

    @property
    def _node_id(self) -> int:
        return self._shard.coordinator.broker_id
