"""The share groups of one shard: their requests in, their effects out.

A request is passed to the group's state machine. Its changes are appended to the shard's partition
as one batch, then applied, then answered. The first batch creates the group. Share state is
initialized and deleted by the broker's persister, once the records about it are replicated.

Source: GroupCoordinatorShard, GroupCoordinatorService and GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.groups.emitters import emit_moved
from mockbroker.core.groups.events import ConsumerResult, Reply, Unload
from mockbroker.core.groups.group import SHARE, required_members
from mockbroker.core.groups.modern.runner import ModernRunner
from mockbroker.core.groups.runner import Assignments, ignore_result
from mockbroker.core.groups.share.events import (
    Change,
    Effect,
    GroupChange,
    Initialize,
    PartitionsChange,
    ShareHeartbeat,
    ShareLeave,
    Store,
    Stored,
    TargetAssignmentChange,
    TargetEpochChange,
    is_tombstone,
)
from mockbroker.core.groups.share.group import ShareGroup, ShareSettings
from mockbroker.core.groups.share.machine import handle
from mockbroker.core.groups.share.partitions import NO_PARTITIONS, Partitions, moved
from mockbroker.core.groups.share.records import parse, record_of
from mockbroker.core.groups.share.state_requests import (
    UNINITIALIZED_OFFSET,
    first_error,
    initialize_request,
    partitions_of,
)
from mockbroker.core.groups.share.states import JOIN_EPOCH, PartitionEvent
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker_protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateResponse,
    )
    from mockbroker_protocol.records import Record

NONE = ErrorCode.NONE


class ShareGroups(ModernRunner[ShareGroup, ShareSettings]):
    """The share groups of one partition of `__consumer_offsets`."""

    __slots__ = ()

    group_type = SHARE

    # ------------------------------------------------------------------ requests of the share group

    def share_heartbeat(self, group_id: str, heartbeat: ShareHeartbeat) -> None:
        """ShareGroupHeartbeat of a member that joins or stays."""
        create = heartbeat.epoch == JOIN_EPOCH
        try:
            group = self.get_or_new(group_id, f"Share group {group_id} not found.", create=create)
        except ApiError as refused:
            self._shard.answer(heartbeat.callback, _refusal(refused))
        else:
            self._run(group, heartbeat)

    def share_leave(self, group_id: str, leave: ShareLeave) -> None:
        """ShareGroupHeartbeat of a member that leaves."""
        try:
            group = self.get_or_new(group_id, f"Group {group_id} not found.", create=False)
        except ApiError as refused:
            self._shard.answer(leave.callback, _refusal(refused))
        else:
            self._run(group, leave)

    def get_or_new(self, group_id: str, not_found: str, *, create: bool) -> ShareGroup:
        """The group, or a new one that is not in the shard's table yet.

        Raises ApiError with the message `not_found`, or if the group has another type.
        """
        group = self.get(group_id)
        if group is not None:
            return group
        if group_id in self._shard.groups:
            not_found = f"Group {group_id} is not a share group."
        elif create:
            return ShareGroup(group_id, self.settings(group_id), self._topics)
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, not_found)

    # ------------------------------------------------------------------------------ whole groups

    def unload(self, group: ShareGroup) -> None:
        handle(group, Unload(), self._shard.now_ms(group.group_id))  # no request waits

    def on_deleted(self, group: ShareGroup) -> None:
        handle(group, Unload(), self._shard.now_ms(group.group_id))

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> ShareSettings:
        def own(name: str) -> int:
            value = configs.group_value(group_id, name)
            assert isinstance(value, int)
            return value

        return ShareSettings(
            session_timeout_ms=own("share.session.timeout.ms"),
            heartbeat_interval_ms=own("share.heartbeat.interval.ms"),
            assignment_interval_ms=own("share.assignment.interval.ms"),
            initialize_retry_ms=max(
                configs.get_int("group.share.initialize.retry.interval.ms"),
                configs.get_int("offsets.commit.timeout.ms"),
            ),
            size_max=configs.get_int("group.share.max.size"),
        )

    # ------------------------------------------------------------------------------------ loading

    def replay_record(self, record: Record, now_ms: int) -> None:
        """Apply a change from the log. A change that is no tombstone creates the group."""
        stored = parse(record)
        assert stored is not None
        group_id, change = stored.group_id, stored.change
        group = self.get(group_id)
        if group is None:
            if is_tombstone(change):
                return
            group = ShareGroup(group_id, self.settings(group_id), self._topics)
            self._shard.put_group(group)
        group.apply((change,), now_ms)
        if isinstance(change, GroupChange) and group.dead:
            self._shard.remove_group(group_id)

    # ----------------------------------------------------------------------------- share partitions

    def _initialize(self, group_id: str, initialize: Initialize, error: ErrorCode) -> None:
        if error is not NONE:
            return  # the heartbeat has got the error; a later one tries again
        offsets = {
            topic_id: dict.fromkeys(partitions, UNINITIALIZED_OFFSET)
            for topic_id, partitions in initialize.which.items()
        }
        request = initialize_request(group_id, offsets, initialize.epoch)
        then = partial(self._on_initialize_response, group_id)
        self._shard.coordinator.share_persister.initialize_state(request, then)

    def _on_initialize_response(
        self, group_id: str, response: InitializeShareGroupStateResponse
    ) -> None:
        which = partitions_of(response)
        if first_error(response) is NONE:
            self.note_initialized(group_id, which)
        else:
            self._note(group_id, PartitionEvent.FAILED, which)

    def note_initialized(self, group_id: str, which: Partitions) -> None:
        """Note that share partitions have state; if that cannot be written, that they have not."""
        if self._note(group_id, PartitionEvent.INITIALIZED, which) is not NONE:
            self._note(group_id, PartitionEvent.FAILED, which)

    def _note(self, group_id: str, event: PartitionEvent, which: Partitions) -> ErrorCode:
        """Write the share partitions after an event, unless the coordinator has moved."""
        group = self.get(group_id)
        if group is None or not which or self._shard.unloaded:
            return NONE
        if event is PartitionEvent.FAILED and not group.partitions.initializing:
            return NONE
        return self.write_event(group, event, which)

    def write_event(self, group: ShareGroup, event: PartitionEvent, which: Partitions) -> ErrorCode:
        """Write and apply the share partitions after an event; returns the error for the client."""
        after = moved(group.partitions, event, which, self._topics)
        return self._write(group, (PartitionsChange(after),))

    def begin_deletion(self, groups: Mapping[str, Partitions]) -> ErrorCode:
        """Note as one batch that the share state of groups is being deleted: DeleteGroups."""
        changes: dict[str, PartitionsChange] = {}
        for group_id, which in groups.items():
            group = self.all()[group_id]
            after = moved(group.partitions, PartitionEvent.DELETE_GROUP, which, self._topics)
            changes[group_id] = PartitionsChange(after)
        return self._write_all(changes)

    def topics_deleted(self) -> None:
        """Forget the share partitions of topics that the metadata no longer has.

        The share coordinator deletes their state by itself (maybeCleanupShareGroupState).
        """
        changes: dict[str, PartitionsChange] = {}
        for group_id, group in self.all().items():
            share = group.partitions
            noted = (*share.initializing, *share.initialized, *share.deleting)
            gone = [topic_id for topic_id in noted if self._topics.by_id(topic_id) is None]
            if gone:
                which = dict.fromkeys(gone, frozenset[int]())
                after = moved(share, PartitionEvent.TOPIC_DELETED, which, self._topics)
                changes[group_id] = PartitionsChange(after)
        self._write_all(changes)

    def _write_all(self, changes: Mapping[str, PartitionsChange]) -> ErrorCode:
        """Write one change for each of several groups, and apply them."""
        if not changes:
            return NONE
        error, _ = self._shard.append([record_of(*each) for each in changes.items()])
        if error is NONE:
            groups = self.all()
            for group_id, change in changes.items():
                groups[group_id].apply((change,), self._shard.now_ms(group_id))
        return error

    # ------------------------------------------------------------------------------------- actions

    def rebalance(self, group: ShareGroup) -> None:
        self._act(group, (GroupChange(group.epoch + 1, group.metadata_hash),))

    def expire(self, group: ShareGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            self._run(group, ShareLeave(callback=ignore_result, member_id=member_id))

    def kick(self, group: ShareGroup, member_ids: Sequence[str]) -> None:
        self.expire(group, member_ids)

    def fence_instance(self, group: ShareGroup, instance_id: str) -> NoReturn:
        raise ActionError(
            f"share group {group.group_id!r} has no static member {instance_id!r}: "
            "members of share groups have no instance ids"
        )

    def assign(self, group: ShareGroup, assignments: Assignments) -> None:
        epoch = group.epoch + 1
        changes: list[Change] = [GroupChange(epoch, group.metadata_hash)]
        for pattern, topics in assignments.items():
            target = {self._topic_id(topic): frozenset(ps) for topic, ps in topics.items()}
            changes += (
                TargetAssignmentChange(each, target) for each in required_members(group, pattern)
            )
        if assignments:
            changes.append(TargetEpochChange(epoch, self._runtime.now_ms()))
        self._act(group, tuple(changes))
        group.targets_overridden = bool(assignments)

    def _topic_id(self, name: str) -> bytes:
        topic = self._topics.by_name(name)
        if topic is None:
            raise ActionError(f"there is no topic {name!r}")
        return topic.topic_id

    def _act(self, group: ShareGroup, changes: tuple[Change, ...]) -> None:
        """Store and apply the changes of an action."""
        self._apply(group, [Store(changes=changes)])
        self._shard.rearm(group)

    # -------------------------------------------------------------------------- events and effects

    def run(self, group: ShareGroup, event: object) -> None:
        self._run(group, event)

    def _run(self, group: ShareGroup, event: object) -> None:
        shard = self._shard
        shard.mark_changed()
        group.settings = self.settings(group.group_id)
        self._apply(group, handle(group, event, shard.now_ms(group.group_id)))
        if shard.groups.get(group.group_id) is group:
            shard.rearm(group)

    def _apply(self, group: ShareGroup, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                self._shard.answer(effect.callback, effect.result)
            elif isinstance(effect, Store):
                self._store(group, effect)
            else:
                self._shard.when_replicated(partial(self._initialize, group.group_id, effect))

    def _store(self, group: ShareGroup, store: Store) -> None:
        former = (group.state, group.epoch) if self._runtime.on_event else None
        error = self._append(group, store.changes)
        now_ms = self._shard.now_ms(group.group_id)
        self._apply(group, handle(group, Stored(store, error), now_ms))
        if former is not None and former != (group.state, group.epoch):
            node_id = self._shard.coordinator.broker_id
            emit_moved(
                self._runtime, node_id, group, former[0].value, group.state_name, group.epoch
            )

    def _write(self, group: ShareGroup, changes: tuple[Change, ...]) -> ErrorCode:
        """Append changes that no event of the machine has caused, and apply them."""
        error = self._append(group, changes)
        if error is NONE:
            group.apply(changes, self._shard.now_ms(group.group_id))
        return error

    def _append(self, group: ShareGroup, changes: tuple[Change, ...]) -> ErrorCode:
        """Append changes as one batch; the first batch of a group puts it into the table."""
        error, _ = self._shard.append([record_of(group.group_id, each) for each in changes])
        if error is NONE and self._shard.groups.get(group.group_id) is not group:
            self._shard.put_group(group)
        return error


def deletable_partitions(group: ShareGroup) -> dict[bytes, frozenset[int]]:
    """The partitions whose state is deleted with the group; also those of an earlier deletion that
    has not finished (shareGroupBuildPartitionDeleteRequest).
    """
    share = group.noted or NO_PARTITIONS
    which = share.with_state()
    for topic_id in share.deleting:
        topic = group.topics.by_id(topic_id)
        if topic is not None:
            which[topic_id] = which.get(topic_id, frozenset()) | frozenset(range(topic.partitions))
    return which


def _refusal(refused: ApiError) -> ConsumerResult:
    return ConsumerResult(error=refused.error, message=refused.message)
