"""The consumer groups of one shard: their requests in, their effects out.

A request is passed to the group's state machine. Its changes are appended to the shard's partition
as one batch, then applied, then answered. The first batch creates the group. If the group replaces
a classic group, the batch begins with the tombstone of the classic group.

Source: GroupCoordinatorShard and GroupMetadataManager.getOrMaybeCreateConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.consumer.events import (
    Change,
    ConsumerHeartbeat,
    ConsumerLeave,
    Downgrade,
    Effect,
    GroupChange,
    RegexesResolved,
    ResolveRegexes,
    Store,
    Stored,
    TargetAssignmentChange,
    TargetEpochChange,
    is_tombstone,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.machine import handle
from mockbroker.core.groups.consumer.migration import downgraded, upgraded
from mockbroker.core.groups.consumer.records import parse, record_of
from mockbroker.core.groups.consumer.states import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    MIGRATION_POLICIES,
    STATIC_LEAVE_EPOCH,
)
from mockbroker.core.groups.emitters import emit_moved
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    ConsumerResult,
    Heartbeat,
    HeartbeatResult,
    Join,
    Leave,
    Reply,
    Sync,
    Unload,
)
from mockbroker.core.groups.group import CLASSIC, CONSUMER, required_members
from mockbroker.core.groups.modern.runner import ModernRunner
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import Assignments, ignore_result
from mockbroker.core.ids import uuid_text
from mockbroker.core.patterns import compile_pattern
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker_protocol.records import Record

NONE = ErrorCode.NONE
MayMatch = Callable[[str], bool]


def _may_match_any(topic: str) -> bool:  # noqa: ARG001
    """Each topic may be matched without an authorizer."""
    return True


class ConsumerGroups(ModernRunner[ConsumerGroup, ConsumerSettings]):
    """Groups of the consumer protocol; members of the classic one may be in them."""

    __slots__ = ("_may_match",)

    group_type = CONSUMER

    def __init__(self, shard: GroupShard) -> None:
        super().__init__(shard)
        # During a heartbeat: whether the member may describe a topic.
        self._may_match: MayMatch = _may_match_any

    # ---------------------------------------------------------- requests of the consumer protocol

    def consumer_heartbeat(
        self, group_id: str, heartbeat: ConsumerHeartbeat, may_match: MayMatch | None = None
    ) -> None:
        """ConsumerGroupHeartbeat of a member that joins or stays.

        The group's regular expressions match only topics for which `may_match` returns True: those
        that the member may describe.
        """
        self._may_match = may_match or _may_match_any
        try:
            self._handle_heartbeat(group_id, heartbeat)
        finally:
            self._may_match = _may_match_any

    def _handle_heartbeat(self, group_id: str, heartbeat: ConsumerHeartbeat) -> None:
        now_ms = self._shard.now_ms(group_id)
        preceding: list[KeyValue] = []
        try:
            group = self.get(group_id)
            if group is None:
                if heartbeat.epoch != JOIN_EPOCH:
                    raise self._not_found(group_id, f"Consumer group {group_id} not found.")
                group = self._new(group_id, preceding, now_ms)
        except ApiError as refused:
            self._shard.answer(heartbeat.callback, _refusal(refused))
        else:
            self._run(group, heartbeat, preceding)

    def consumer_leave(self, group_id: str, leave: ConsumerLeave) -> None:
        """ConsumerGroupHeartbeat of a member that leaves."""
        group = self.get(group_id)
        if group is None:
            refused = self._not_found(group_id, f"Group {group_id} not found.")
            self._shard.answer(leave.callback, _refusal(refused))
        else:
            self.run(group, leave)

    def _not_found(self, group_id: str, message: str) -> ApiError:
        """The error for a group that does not exist, with `message`, or has another type."""
        if group_id in self._shard.groups:
            message = f"Group {group_id} is not a consumer group."
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def _new(self, group_id: str, preceding: list[KeyValue], now_ms: int) -> ConsumerGroup:
        """A new group. The tombstones and records of an upgrade are added to `preceding`.

        Raises ApiError if a group with this id is not a classic one, or cannot be upgraded.
        """
        former = self._shard.groups.get(group_id)
        if former is not None and former.group_type != CLASSIC:
            raise self._not_found(group_id, "")
        settings = self.settings(group_id)
        classic = self._shard.classic.get(group_id)
        if classic is None:
            return ConsumerGroup(group_id, settings, self._topics)
        preceding += classic.tombstone_records()
        if classic.is_empty():
            return ConsumerGroup(group_id, settings, self._topics)
        group, changes = upgraded(classic, settings, self._topics, now_ms)
        preceding += (record_of(group_id, change) for change in changes)
        return group

    # ----------------------------------------------------------- requests of the classic protocol

    def join(self, group: ConsumerGroup, join: Join) -> None:
        """JoinGroup. A classic group replaces an empty group."""
        if group.is_empty():
            self.replace_by_classic(group, join)
            return
        if join.member_id == NO_MEMBER_ID:
            member_id = uuid_text(self._runtime.ids.uuid())
            join = msgspec.structs.replace(join, new_member_id=member_id)
        self.run(group, join)

    def sync(self, group: ConsumerGroup, sync: Sync) -> None:
        self.run(group, sync)

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        results: list[HeartbeatResult] = []
        self.run(
            group,
            Heartbeat(
                callback=results.append,
                member_id=member_id,
                instance_id=instance_id,
                generation=generation,
            ),
        )
        return results[0].error

    def leave(self, group: ConsumerGroup, leave: Leave) -> None:
        self.run(group, leave)

    # -------------------------------------------------------------------------------- whole groups

    def unload(self, group: ConsumerGroup) -> None:
        handle(group, Unload(), self._shard.now_ms(group.group_id))  # no request waits

    def on_deleted(self, group: ConsumerGroup) -> None:
        handle(group, Unload(), self._shard.now_ms(group.group_id))

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> ConsumerSettings:
        def own(name: str) -> int:
            value = configs.group_value(group_id, name)
            assert isinstance(value, int)
            return value

        policy = configs.get("group.consumer.migration.policy")
        assignors = configs.get("group.consumer.assignors")
        assert isinstance(assignors, tuple)
        return ConsumerSettings(
            session_timeout_ms=own("consumer.session.timeout.ms"),
            heartbeat_interval_ms=own("consumer.heartbeat.interval.ms"),
            assignment_interval_ms=own("consumer.assignment.interval.ms"),
            regex_refresh_interval_ms=configs.get_int("group.consumer.regex.refresh.interval.ms"),
            size_max=configs.get_int("group.consumer.max.size"),
            classic_size_max=configs.get_int("group.max.size"),
            assignors=assignors,
            migration=MIGRATION_POLICIES[str(policy).lower()],
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
            group = ConsumerGroup(group_id, self.settings(group_id), self._topics)
            self._shard.put_group(group)
        group.apply((change,))
        if isinstance(change, GroupChange) and group.dead:
            self._shard.remove_group(group_id)

    # ------------------------------------------------------------------------------------- actions

    def rebalance(self, group: ConsumerGroup) -> None:
        self._store_changes(group, (GroupChange(group.epoch + 1, group.metadata_hash),))

    def expire(self, group: ConsumerGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            self._remove_member(group, member_id, None, LEAVE_EPOCH)

    def kick(self, group: ConsumerGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            instance_id = group.members[member_id].instance_id
            self._remove_member(group, member_id, instance_id, LEAVE_EPOCH)

    def fence_instance(self, group: ConsumerGroup, instance_id: str) -> None:
        member = group.static_member(instance_id)
        if member is None:
            raise ActionError(f"group {group.group_id!r} has no static member {instance_id!r}")
        self._remove_member(group, member.member_id, instance_id, STATIC_LEAVE_EPOCH)
        heartbeat = ConsumerHeartbeat(
            callback=ignore_result,
            member_id=self._runtime.ids.member_suffix(),
            epoch=0,
            instance_id=instance_id,
            rack_id=member.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topic_names=member.topic_names,
            regex=member.regex or None,
            assignor=member.assignor,
            reported={},
            client_id=member.client_id,
            client_host=member.client_host,
        )
        self.consumer_heartbeat(group.group_id, heartbeat)

    def assign(self, group: ConsumerGroup, assignments: Assignments) -> None:
        epoch = group.epoch + 1
        changes: list[Change] = [GroupChange(epoch, group.metadata_hash)]
        for pattern, topics in assignments.items():
            target = {self._topic_id(topic): frozenset(ps) for topic, ps in topics.items()}
            changes += (
                TargetAssignmentChange(each, target) for each in required_members(group, pattern)
            )
        if assignments:
            changes.append(TargetEpochChange(epoch, self._runtime.now_ms()))
        self._store_changes(group, tuple(changes))

    def _topic_id(self, name: str) -> bytes:
        topic = self._topics.by_name(name)
        if topic is None:
            raise ActionError(f"there is no topic {name!r}")
        return topic.topic_id

    def _remove_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int
    ) -> None:
        # By id, because the removal of another member may have downgraded the group.
        leave = ConsumerLeave(
            callback=ignore_result, member_id=member_id, epoch=epoch, instance_id=instance_id
        )
        self.consumer_leave(group.group_id, leave)

    def _store_changes(self, group: ConsumerGroup, changes: tuple[Change, ...]) -> None:
        """Store and apply the changes of an action."""
        self._apply(group, [Store(changes=changes)])
        self._shard.rearm(group)

    # -------------------------------------------------------------------------- events and effects

    def run(self, group: ConsumerGroup, event: object) -> None:
        self._run(group, event, ())

    def _run(self, group: ConsumerGroup, event: object, preceding: Iterable[KeyValue]) -> None:
        """Handle an event. The records in `preceding` are stored before those of the group."""
        shard = self._shard
        shard.mark_changed()
        group.settings = self.settings(group.group_id)
        effects = handle(group, event, shard.now_ms(group.group_id))
        self._apply(group, effects, preceding)
        if shard.groups.get(group.group_id) is group:
            shard.rearm(group)

    def _apply(
        self, group: ConsumerGroup, effects: list[Effect], preceding: Iterable[KeyValue] = ()
    ) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                self._shard.answer(effect.callback, effect.result)
            elif isinstance(effect, Store):
                self._store(group, effect, preceding)
            elif isinstance(effect, ResolveRegexes):
                # Not if storing has failed and there is no group.
                if self._shard.groups.get(group.group_id) is group:
                    self._resolve(group, effect)
            else:
                self._downgrade(group, effect)

    def _store(self, group: ConsumerGroup, store: Store, preceding: Iterable[KeyValue]) -> None:
        now_ms = self._shard.now_ms(group.group_id)
        group_id = group.group_id
        records = [*preceding, *(record_of(group_id, change) for change in store.changes)]
        former = (group.state, group.epoch) if self._runtime.on_event else None
        error, _ = self._shard.append(records)
        if error is NONE and self._shard.groups.get(group_id) is not group:
            classic = self._shard.classic.get(group_id)
            if classic is not None:
                self._shard.classic.unload_upgraded(classic)
            self._shard.put_group(group)
        self._apply(group, handle(group, Stored(store, error), now_ms))
        if former is not None and former != (group.state, group.epoch):
            node_id = self._shard.coordinator.broker_id
            emit_moved(
                self._runtime, node_id, group, former[0].value, group.state_name, group.epoch
            )

    def _resolve(self, group: ConsumerGroup, effect: ResolveRegexes) -> None:
        names = [name for name in self._topics.names() if self._may_match(name)]
        topics: dict[str, frozenset[str]] = {}
        for regex in effect.regexes:
            matches = compile_pattern(regex).fullmatch
            topics[regex] = frozenset(name for name in names if matches(name))
        now_ms = self._shard.now_ms(group.group_id)
        resolved = RegexesResolved(topics, self._topics.version, now_ms)
        self._apply(group, handle(group, resolved, now_ms))

    def _downgrade(self, group: ConsumerGroup, downgrade: Downgrade) -> None:
        now_ms = self._shard.now_ms(group.group_id)
        classic = downgraded(group, downgrade, self._shard.coordinator.settings, now_ms)
        records = group.tombstone_records()
        records.append(group_records.group_metadata(group.group_id, classic.image()))
        error, _ = self._shard.append(records)
        if error is not NONE:
            store = Store(changes=(), answer=downgrade.answer, retry=downgrade.retry)
            self._apply(group, handle(group, Stored(store, error), now_ms))
            return
        self._shard.classic.start_downgraded(classic, downgrade.rebalance)
        if downgrade.answer is not None:
            self._shard.answer(downgrade.answer.callback, downgrade.answer.result)


def _refusal(refused: ApiError) -> ConsumerResult:
    return ConsumerResult(error=refused.error, message=refused.message)
