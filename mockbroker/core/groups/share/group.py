"""A share group: its state, and the checks that depend on the state only.

Source: ShareGroup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.groups.group import SHARE
from mockbroker.core.groups.modern.events import (
    GroupChange,
    Store,
    StoredChange,
    TargetEpochChange,
)
from mockbroker.core.groups.modern.group import APPLIERS, ModernGroup
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.share.events import Effect, PartitionsChange, ShareStore
from mockbroker.core.groups.share.members import ShareMember, Target
from mockbroker.core.groups.share.partitions import NO_PARTITIONS, SharePartitions
from mockbroker.core.groups.share.records import RECORD_TYPES
from mockbroker.core.groups.share.states import (
    EMPTY_ANSWERS,
    GROUP_STATES,
    GroupFacts,
    ShareGroupState,
)
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

# OffsetCommit and OffsetDelete (ShareGroup.validateOffsetCommit, …).
NO_OFFSETS = ErrorCode.GROUP_ID_NOT_FOUND


class ShareSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configs of one group (`share.session.timeout.ms`, …); their defaults are the broker
    configs (`group.share.…`).
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initialize_retry_ms: int = 30_000
    size_max: int = 200


class ShareGroup(ModernGroup[ShareSettings, ShareMember, Target, Effect]):
    """One group; also its share partitions are written by stored changes only."""

    group_type = SHARE
    record_types = RECORD_TYPES

    __slots__ = ("noted", "partitions_stored_ms", "targets_overridden")

    def __init__(self, group_id: str, settings: ShareSettings, topics: TopicSource) -> None:
        super().__init__(group_id, settings, topics)
        self.noted: SharePartitions | None = None  # its record, if there is one
        # When the last record of share partitions was stored or loaded.
        self.partitions_stored_ms = 0
        # Whether an action has set the target; the assignor must not run before the group changes.
        self.targets_overridden = False

    # ----------------------------------------------------------------------------------- queries

    @property
    def state(self) -> ShareGroupState:
        return GROUP_STATES[GroupFacts(self.dead, bool(self.members))]

    @property
    def protocol(self) -> str:
        return "simple"  # the only one of group.share.assignors

    @property
    def partitions(self) -> SharePartitions:
        """The share partitions of the group."""
        return NO_PARTITIONS if self.noted is None else self.noted

    def subscribed_names(self) -> set[str]:
        """The topics to which a member subscribes."""
        return {name for member in self.members.values() for name in member.topic_names}

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in member.topic_names for member in self.members.values())

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """A share group never expires (ShareGroup.shouldExpire)."""
        return None

    # ---------------------------------------------------------------------------------- changes

    def new_member(self, member_id: str) -> ShareMember:
        return ShareMember(member_id=member_id)

    def _apply_target_epoch(self, change: TargetEpochChange) -> None:
        self.apply_target_epoch(change)
        self.targets_overridden = False

    def _apply_partitions(self, change: PartitionsChange) -> None:
        self.noted = change.partitions
        self.partitions_stored_ms = self.timers.now_ms

    def last_tombstones(self) -> tuple[StoredChange, ...]:
        return (PartitionsChange(None), GroupChange(None))

    def on_stored(self, store: Store, *, created: bool) -> None:  # noqa: ARG002
        if isinstance(store, ShareStore) and store.initialize is not None:
            self.effects.append(store.initialize)

    # ----------------------------------------------------------------------- validation of requests

    def check_commit(
        self,
        member_id: str,  # noqa: ARG002
        instance_id: str | None,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
        *,
        transactional: bool = False,  # noqa: ARG002
        version: int = 0,  # noqa: ARG002
    ) -> ErrorCode:
        return NO_OFFSETS

    def check_partition(
        self,
        member_id: str,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        topic: str,  # noqa: ARG002
        topic_id: bytes,  # noqa: ARG002
        partition: int,  # noqa: ARG002
        *,
        transactional: bool = False,  # noqa: ARG002
    ) -> ErrorCode:
        return NO_OFFSETS

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002
        """OffsetFetch has no offset and no error, as for a group that does not exist."""
        return ErrorCode.NONE

    def check_offset_delete(self) -> ErrorCode:
        return NO_OFFSETS

    def check_delete(self) -> ErrorCode:
        return EMPTY_ANSWERS[self.state]


ShareGroup.appliers = {
    **APPLIERS,
    TargetEpochChange: ShareGroup._apply_target_epoch,
    PartitionsChange: ShareGroup._apply_partitions,
}
