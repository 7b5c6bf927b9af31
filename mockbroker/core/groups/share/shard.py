"""The share groups of one shard: their requests in, their effects out.

Share state is initialized and deleted by the broker's persister, once the records about it are
replicated.

Source: GroupCoordinatorShard, GroupCoordinatorService and GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.events import ConsumerResult
from mockbroker.core.groups.group import SHARE
from mockbroker.core.groups.modern.events import StoredChange
from mockbroker.core.groups.modern.runner import ModernRunner, group_ints
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import Assignments, ignore_result
from mockbroker.core.groups.share.events import Effect, Initialize, PartitionsChange, ShareLeave
from mockbroker.core.groups.share.group import ShareGroup, ShareSettings
from mockbroker.core.groups.share.machine import handle
from mockbroker.core.groups.share.partitions import NO_PARTITIONS, Partitions, moved
from mockbroker.core.groups.share.records import RECORD_TYPES
from mockbroker.core.groups.share.state_requests import (
    UNINITIALIZED_OFFSET,
    first_error,
    initialize_request,
    partitions_of,
)
from mockbroker.core.groups.share.states import PartitionEvent
from mockbroker.core.share.operations import INITIALIZE
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker_protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateResponse,
    )

NONE = ErrorCode.NONE


class ShareGroups(ModernRunner[ShareGroup, ShareSettings]):
    """The share groups of one partition of `__consumer_offsets`."""

    __slots__ = ()

    group_type = SHARE
    group = ShareGroup

    # ------------------------------------------------------------------ requests of the share group

    def new_group(self, group_id: str, preceding: list[KeyValue]) -> ShareGroup:  # noqa: ARG002
        if group_id in self._shard.groups:
            raise self.not_found(group_id, "")
        return self._empty_group(group_id)

    @staticmethod
    def refusal(error: ErrorCode, message: str | None) -> ConsumerResult:
        return ConsumerResult(error=error, message=message)

    # ------------------------------------------------------------------------------------ settings

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> ShareSettings:
        return ShareSettings(
            **group_ints(
                configs,
                group_id,
                "share",
                "session_timeout_ms",
                "heartbeat_interval_ms",
                "assignment_interval_ms",
            ),
            initialize_retry_ms=max(
                configs.get_int("group.share.initialize.retry.interval.ms"),
                configs.get_int("offsets.commit.timeout.ms"),
            ),
            size_max=configs.get_int("group.share.max.size"),
        )

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
        self._shard.coordinator.share_persister.send(INITIALIZE, request, then)

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
            gone = [topic_id for topic_id in noted if not self._topics.has(topic_id)]
            if gone:
                which = dict.fromkeys(gone, frozenset[int]())
                after = moved(share, PartitionEvent.TOPIC_DELETED, which, self._topics)
                changes[group_id] = PartitionsChange(after)
        self._write_all(changes)

    def _write_all(self, changes: Mapping[str, PartitionsChange]) -> ErrorCode:
        """Write one change for each of several groups, and apply them."""
        if not changes:
            return NONE
        error, _ = self._shard.append([RECORD_TYPES.record_of(*each) for each in changes.items()])
        if error is NONE:
            groups = self.all()
            for group_id, change in changes.items():
                self._apply_changes(groups[group_id], (change,))
        return error

    # ------------------------------------------------------------------------------------- actions

    def expire(self, group: ShareGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            self.run(group, ShareLeave(callback=ignore_result, member_id=member_id))

    def fence_instance(self, group: ShareGroup, instance_id: str) -> NoReturn:
        raise ActionError(
            f"share group {group.group_id!r} has no static member {instance_id!r}: "
            "members of share groups have no instance ids"
        )

    def assign(self, group: ShareGroup, assignments: Assignments) -> None:
        super().assign(group, assignments)
        group.targets_overridden = bool(assignments)

    # -------------------------------------------------------------------------- events and effects

    def _handle(self, group: ShareGroup, event: object) -> list[Effect]:
        return handle(group, event, self._shard.now_ms(group.group_id))

    def _carry_out(self, group: ShareGroup, effect: object) -> None:
        assert isinstance(effect, Initialize)
        self._shard.when_replicated(partial(self._initialize, group.group_id, effect))

    def _write(self, group: ShareGroup, changes: tuple[StoredChange, ...]) -> ErrorCode:
        """Append changes that no event of the machine has caused, and apply them."""
        error, _ = self._append(group, changes)
        if error is NONE:
            self._apply_changes(group, changes)
        return error

    def _apply_changes(self, group: ShareGroup, changes: tuple[StoredChange, ...]) -> None:
        group.timers.now_ms = self._shard.now_ms(group.group_id)
        group.apply(changes)


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
