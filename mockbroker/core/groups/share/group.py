"""A share group: its state, and the checks that depend on the state only.

Only a stored change writes the members, epochs, assignments and share partitions. `machine` handles
the events of the group.

Source: ShareGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from mockbroker.core.groups.group import SHARE
from mockbroker.core.groups.modern.timers import MemberTimers
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.share.events import (
    Change,
    CurrentAssignmentChange,
    Effect,
    GroupChange,
    MemberChange,
    PartitionsChange,
    TargetAssignmentChange,
    TargetEpochChange,
    removal,
)
from mockbroker.core.groups.share.members import ShareMember, Target
from mockbroker.core.groups.share.partitions import NO_PARTITIONS, SharePartitions
from mockbroker.core.groups.share.records import record_of
from mockbroker.core.groups.share.states import (
    EMPTY_ANSWERS,
    GROUP_STATES,
    LEAVE_EPOCH,
    GroupFacts,
    GroupState,
)
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

SHARE_PROTOCOL_TYPE = "share"
ASSIGNOR = "simple"  # the only one of group.share.assignors
FIRST_EPOCH = 1  # of a group and of its target assignment (TargetAssignmentMetadata.INITIAL)
NO_VERSION = -1
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


class ShareGroup:
    """One group. Other modules only read its attributes."""

    group_type: ClassVar[str] = SHARE

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "compared_metadata_version",
        "dead",
        "effects",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "noted",
        "partitions_stored_ms",
        "settings",
        "targets",
        "targets_overridden",
        "timers",
        "topics",
    )

    def __init__(self, group_id: str, settings: ShareSettings, topics: TopicSource) -> None:
        self.group_id = group_id
        self.settings = settings
        self.topics = topics
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0  # 0: not known, the next assignment need not wait
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Target] = {}
        self.noted: SharePartitions | None = None  # its record, if there is one
        # When the last record of share partitions was stored or loaded.
        self.partitions_stored_ms = 0
        self.dead = False
        # Whether an action has set the target; the assignor must not run before the group changes.
        self.targets_overridden = False
        # The version of the metadata at the last comparison of the hash.
        self.compared_metadata_version = NO_VERSION
        self.timers = MemberTimers()
        self.effects: list[Effect] = []

    # ----------------------------------------------------------------------------------- queries

    @property
    def state(self) -> GroupState:
        return GROUP_STATES[GroupFacts(self.dead, bool(self.members))]

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return SHARE_PROTOCOL_TYPE

    @property
    def protocol(self) -> str:
        return ASSIGNOR

    @property
    def generation_or_epoch(self) -> int:
        return self.epoch

    @property
    def partitions(self) -> SharePartitions:
        """The share partitions of the group."""
        return NO_PARTITIONS if self.noted is None else self.noted

    def is_empty(self) -> bool:
        return not self.members

    def subscribed_names(self) -> set[str]:
        """The topics to which a member subscribes."""
        return {name for member in self.members.values() for name in member.topic_names}

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in member.topic_names for member in self.members.values())

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """A share group never expires (ShareGroup.shouldExpire)."""
        return None

    # ---------------------------------------------------------------------------------- changes

    def apply(self, changes: Iterable[Change], now_ms: int) -> None:
        """Apply changes that are in the log, in their order."""
        for change in changes:
            _APPLY[type(change)](self, change, now_ms)

    def _apply_group(self, change: GroupChange, _: int) -> None:
        if change.epoch is None:
            self.dead = True
        else:
            self.epoch = change.epoch
            self.metadata_hash = change.metadata_hash

    def _apply_member(self, change: MemberChange, _: int) -> None:
        if change.member is None:
            self.members.pop(change.member_id, None)
            return
        # Epochs and partitions have changes of their own.
        base = self.members.get(change.member_id) or ShareMember(member_id=change.member_id)
        self.members[change.member_id] = msgspec.structs.replace(
            change.member,
            epoch=base.epoch,
            previous_epoch=base.previous_epoch,
            state=base.state,
            assigned=base.assigned,
        )

    def _apply_target_epoch(self, change: TargetEpochChange, _: int) -> None:
        self.assignment_epoch = LEAVE_EPOCH if change.epoch is None else change.epoch
        self.assignment_timestamp_ms = change.timestamp_ms
        self.targets_overridden = False

    def _apply_target(self, change: TargetAssignmentChange, _: int) -> None:
        if change.target is None:
            self.targets.pop(change.member_id, None)
        else:
            self.targets[change.member_id] = change.target

    def _apply_current(self, change: CurrentAssignmentChange, _: int) -> None:
        old = self.members.get(change.member_id)
        current = change.current
        if current is not None:
            self.members[change.member_id] = msgspec.structs.replace(
                old or ShareMember(member_id=change.member_id),
                epoch=current.epoch,
                previous_epoch=current.previous_epoch,
                state=current.state,
                assigned=current.assigned,
            )
        elif old is not None:
            self.members[change.member_id] = msgspec.structs.replace(
                old, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}
            )

    def _apply_partitions(self, change: PartitionsChange, now_ms: int) -> None:
        self.noted = change.partitions
        self.partitions_stored_ms = now_ms

    def request_metadata_refresh(self) -> None:
        """Compare the subscribed topics with the metadata again; the last result was not stored."""
        self.compared_metadata_version = NO_VERSION

    def tombstones(self) -> tuple[Change, ...]:
        """The changes that remove the group and its members, in Kafka's order."""
        members = list(self.members)
        changes: list[Change] = []
        changes += (removal(member_id)[0] for member_id in members)
        changes += (TargetAssignmentChange(member_id, None) for member_id in members)
        changes.append(TargetEpochChange(None))
        changes += (MemberChange(member_id, None) for member_id in members)
        changes.append(PartitionsChange(None))
        changes.append(GroupChange(None))
        return tuple(changes)

    def tombstone_records(self) -> list[KeyValue]:
        return [record_of(self.group_id, change) for change in self.tombstones()]

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, which may find no timer expired; None without timers."""
        return self.timers.next_ms()

    def extend_deadlines(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the sessions of connected members by `by_ms`, because the clock is about to
        advance; also those armed during the advance.
        """
        self.timers.extend(connected, by_ms, now_ms)

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


_APPLY: dict[type, Callable[[ShareGroup, Any, int], None]] = {
    GroupChange: ShareGroup._apply_group,
    MemberChange: ShareGroup._apply_member,
    TargetEpochChange: ShareGroup._apply_target_epoch,
    TargetAssignmentChange: ShareGroup._apply_target,
    CurrentAssignmentChange: ShareGroup._apply_current,
    PartitionsChange: ShareGroup._apply_partitions,
}
