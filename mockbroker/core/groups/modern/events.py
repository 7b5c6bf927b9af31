"""The stored changes, effects and events that the groups of all newer protocols have.

All are frozen. The machine of a group computes *changes*; each is one record of
`__consumer_offsets`. A Store effect requests that they are stored, and stored changes are applied.
Loading applies the same changes in the same order. Callbacks are those of `groups.events`.

M is a type of members, T of target assignments, A of the partitions or tasks that a member owns.
"""

from __future__ import annotations

from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec

from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.group import GroupMember
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker_protocol import ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1  # in a request: the member leaves; in a member: its assignment is gone
STATIC_LEAVE_EPOCH = -2  # a static member left and may return within its session timeout

M = TypeVar("M")
T = TypeVar("T")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class ModernMember(GroupMember, Protocol[A_co]):
    """A member of any newer protocol. A new member has epoch 0."""

    @property
    def epoch(self) -> int: ...

    @property
    def previous_epoch(self) -> int: ...

    @property
    def state(self) -> int: ...

    @property
    def rebalance_timeout_ms(self) -> int: ...

    @property
    def assigned(self) -> A_co: ...

    @property
    def revoking(self) -> A_co: ...


class StoredChange(msgspec.Struct, frozen=True):
    """One change. `value_field` names its field that is None if the record is a tombstone."""

    value_field: ClassVar[str]

    @property
    def is_tombstone(self) -> bool:
        return getattr(self, self.value_field) is None


class GroupChange(StoredChange, frozen=True):
    """The group epoch, and a hash of the metadata of the topics. None: deleted."""

    value_field = "epoch"
    epoch: int | None
    metadata_hash: int = 0


class MemberChange(StoredChange, Generic[M], frozen=True):
    """A member without its epochs and what it owns. None: removed."""

    value_field = "member"
    member_id: str
    member: M | None


class TargetEpochChange(StoredChange, frozen=True):
    """The assignment epoch, and when the assignor finished. None: the target is removed."""

    value_field = "epoch"
    epoch: int | None
    timestamp_ms: int = 0


class TargetAssignmentChange(StoredChange, Generic[T], frozen=True):
    """A member's target assignment. None: removed."""

    value_field = "target"
    member_id: str
    target: T | None


class CurrentAssignment(msgspec.Struct, Generic[A], frozen=True):
    """A member's epochs, and what it owns or has to revoke. `state` is a value of the log."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: A
    revoking: A


class CurrentAssignmentChange(StoredChange, Generic[A], frozen=True):
    """A member's current assignment. None: removed."""

    value_field = "current"
    member_id: str
    current: CurrentAssignment[A] | None


def current_assignment_change(member: ModernMember[A]) -> CurrentAssignmentChange[A]:
    """The change with a member's epochs and what it owns."""
    current = CurrentAssignment(
        member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking
    )
    return CurrentAssignmentChange(member.member_id, current)


def removal(member_id: str) -> tuple[StoredChange, ...]:
    """The changes that remove a member."""
    return (
        CurrentAssignmentChange(member_id, None),
        TargetAssignmentChange(member_id, None),
        MemberChange(member_id, None),
    )


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """Store the changes as one batch and report the outcome with a Stored event.

    Once they are stored, `answer` is sent and `timers` are set. If a write without an answer fails,
    `retry` is set.
    """

    changes: tuple[StoredChange, ...]
    answer: Reply | None = None
    timers: tuple[SetTimer, ...] = ()
    retry: SetTimer | None = None


class Stored(msgspec.Struct, frozen=True):
    """The outcome of a Store effect: stored, or failed with `error`. `created`: the group is in the
    log since these changes.
    """

    store: Store
    error: ErrorCode
    created: bool = False
