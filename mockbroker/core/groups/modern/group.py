"""A group of a newer protocol: its state, and the checks that depend on the state only.

Only a stored change writes the members, epochs and assignments. The group's `machine` handles its
events.

Source: ModernGroup.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.group import Group, commit_timestamp_ms
from mockbroker.core.groups.modern.events import (
    LEAVE_EPOCH,
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    ModernMember,
    Store,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
    removal,
)
from mockbroker.core.groups.modern.records import RecordTypes
from mockbroker.core.groups.modern.timers import MemberTimers
from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.records import KeyValue
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

MEMBER_EPOCH_SINCE = 9  # OffsetCommit
FIRST_EPOCH = 1  # of a group and of its target assignment (TargetAssignmentMetadata.INITIAL)
NO_VERSION = -1

_CURRENT_FIELDS = CurrentAssignment.__struct_fields__


class ModernSettings(Protocol):
    """The configs of one group that all newer protocols have."""

    @property
    def session_timeout_ms(self) -> int: ...

    @property
    def heartbeat_interval_ms(self) -> int: ...

    @property
    def assignment_interval_ms(self) -> int: ...

    @property
    def size_max(self) -> int: ...


S = TypeVar("S", bound=ModernSettings)
M = TypeVar("M", bound=ModernMember[Any])
T = TypeVar("T")
E = TypeVar("E")


class ModernGroup(Group, Generic[S, M, T, E]):
    """One group with settings S, members M, target assignments T and effects E. Other modules only
    read its attributes.
    """

    record_types: ClassVar[RecordTypes]
    # What a member without an assignment owns.
    nothing_owned: ClassVar[Any] = {}
    # The assignment epoch after its tombstone.
    no_assignment_epoch: ClassVar[int] = LEAVE_EPOCH
    appliers: ClassVar[Mapping[type, Callable[[Any, Any], None]]]

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
        "settings",
        "targets",
        "timers",
        "topics",
    )

    def __init__(self, group_id: str, settings: S, topics: TopicSource) -> None:
        self.group_id = group_id
        self.settings = settings
        self.topics = topics
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0  # 0: not known, the next assignment need not wait
        # An attribute where Group has a property: each heartbeat reads it several times.
        self.members: dict[str, M] = {}  # pyright: ignore[reportIncompatibleMethodOverride]
        self.targets: dict[str, T] = {}
        self.dead = False
        # The version of the metadata at the last comparison of the hash.
        self.compared_metadata_version = NO_VERSION
        self.timers = MemberTimers()
        self.effects: list[E] = []

    # ----------------------------------------------------------------------------------- queries

    @property
    @abstractmethod
    def state(self) -> Enum: ...

    @property
    def state_name(self) -> str:
        name: str = self.state.value
        return name

    @property
    def protocol_type(self) -> str:
        return self.group_type

    @property
    def generation_or_epoch(self) -> int:
        return self.epoch

    def is_empty(self) -> bool:
        return not self.members

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """The retention of an offset starts with its commit in any state."""
        return commit_timestamp_ms

    def must_revoke(self, member: M) -> bool:  # noqa: ARG002
        """Whether the member has to revoke something within its rebalance timeout."""
        return False

    def may_assign(self, now_ms: int) -> bool:
        """Whether the assignment interval is over."""
        if self.assignment_timestamp_ms == 0:
            return True
        return now_ms >= self.assignment_timestamp_ms + self.settings.assignment_interval_ms

    # ---------------------------------------------------------------------------------- changes

    def apply(self, changes: Iterable[StoredChange]) -> None:
        """Apply changes that are in the log, in their order."""
        for change in changes:
            self.appliers[type(change)](self, change)

    @abstractmethod
    def new_member(self, member_id: str) -> M: ...

    def put_member(self, old: M | None, new: M) -> None:  # noqa: ARG002
        self.members[new.member_id] = new

    def remove_member(self, old: M) -> None:
        del self.members[old.member_id]

    def apply_group(self, change: GroupChange) -> None:
        if change.epoch is None:
            self.dead = True
        else:
            self.epoch = change.epoch
            self.metadata_hash = change.metadata_hash

    def apply_member(self, change: MemberChange[M]) -> None:
        old = self.members.get(change.member_id)
        if change.member is None:
            if old is not None:
                self.remove_member(old)
            return
        # Epochs and partitions have changes of their own.
        base = old or self.new_member(change.member_id)
        kept = {name: getattr(base, name) for name in _CURRENT_FIELDS}
        self.put_member(old, _replace(change.member, kept))

    def apply_target_epoch(self, change: TargetEpochChange) -> None:
        self.assignment_epoch = self.no_assignment_epoch if change.epoch is None else change.epoch
        self.assignment_timestamp_ms = change.timestamp_ms

    def apply_target(self, change: TargetAssignmentChange[T]) -> None:
        if change.target is None:
            self.targets.pop(change.member_id, None)
        else:
            self.targets[change.member_id] = change.target

    def apply_current(self, change: CurrentAssignmentChange[Any]) -> None:
        old = self.members.get(change.member_id)
        if change.current is not None:
            current = {name: getattr(change.current, name) for name in _CURRENT_FIELDS}
            self.put_member(old, _replace(old or self.new_member(change.member_id), current))
        elif old is not None:
            gone = {
                "epoch": LEAVE_EPOCH,
                "previous_epoch": LEAVE_EPOCH,
                "assigned": self.nothing_owned,
                "revoking": self.nothing_owned,
            }
            self.put_member(old, _replace(old, gone))

    def request_metadata_refresh(self) -> None:
        """Compare the subscribed topics with the metadata again; the last result was not stored."""
        self.compared_metadata_version = NO_VERSION

    def next_epoch(self) -> GroupChange:
        """The change that raises the group epoch and nothing else."""
        return GroupChange(self.epoch + 1, self.metadata_hash)

    def tombstones(self) -> tuple[StoredChange, ...]:
        """The changes that remove the group and its members, in Kafka's order."""
        members = [removal(member_id) for member_id in self.members]
        return (
            *(current for current, _, _ in members),
            *(target for _, target, _ in members),
            TargetEpochChange(None),
            *(member for _, _, member in members),
            *self.last_tombstones(),
        )

    def last_tombstones(self) -> tuple[StoredChange, ...]:
        """The changes that remove everything but the members."""
        return (GroupChange(None),)

    def tombstone_records(self) -> list[KeyValue]:
        return [self.record_types.record_of(self.group_id, each) for each in self.tombstones()]

    def deadline_ms(self) -> int | None:
        return self.timers.next_ms()

    def extend_deadlines(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        self.timers.extend(connected, by_ms, now_ms)

    def on_stored(self, store: Store, *, created: bool) -> None:
        """A Store has taken effect; `created`: the group is in the log since."""

    # ----------------------------------------------------------------------- validation of requests

    def known_member(self, member_id: str) -> M:
        """Raises ApiError (UNKNOWN_MEMBER_ID)."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def check_size(self, member_id: str | None) -> None:
        """Raises ApiError (GROUP_MAX_SIZE_REACHED) if the member cannot be one more."""
        size_max = self.settings.size_max
        if len(self.members) >= size_max and member_id not in self.members:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The {self.group_type} group has reached its maximum capacity of {size_max} "
                "members.",
            )

    def fenced(self, member: M, epoch: int, *, previous_allowed: bool = False) -> ApiError:
        """The error of a member that sends another epoch than its own."""
        which = "greater" if epoch > member.epoch else "smaller"
        previous = (
            f", and it does not match the previous member epoch ({member.previous_epoch})"
            if previous_allowed and epoch < member.epoch
            else ""
        )
        return ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The {self.group_type} group member has a {which} member epoch ({epoch}) than the one "
            f"known by the group coordinator ({member.epoch}){previous}. The member must abandon "
            "all its partitions and rejoin.",
        )

    def stale_epoch(self, member: M, *, transactional: bool) -> ErrorCode:  # noqa: ARG002
        """The error of a commit or a fetch of offsets with an epoch that is not the member's."""
        return ErrorCode.ILLEGAL_GENERATION if transactional else ErrorCode.STALE_MEMBER_EPOCH

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether OffsetFetch may be answered: a request without a member, or with its epoch."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        if member_id is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka throws a NullPointerException
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return ErrorCode.NONE
        return self.stale_epoch(member, transactional=False)

    def check_offset_delete(self) -> ErrorCode:
        """Offsets may be deleted in any state, except those of subscribed topics."""
        return ErrorCode.NONE


def _replace(member: M, fields: Mapping[str, object]) -> M:
    assert isinstance(member, msgspec.Struct)
    return msgspec.structs.replace(member, **fields)


APPLIERS: Mapping[type, Callable[[Any, Any], None]] = {
    GroupChange: ModernGroup.apply_group,
    MemberChange: ModernGroup.apply_member,
    TargetEpochChange: ModernGroup.apply_target_epoch,
    TargetAssignmentChange: ModernGroup.apply_target,
    CurrentAssignmentChange: ModernGroup.apply_current,
}
