"""The events, effects and stored changes of a share group.

All are frozen. The machine of a group computes *changes*; each is one record of
`__consumer_offsets`. A Store effect requests that they are stored, and stored changes are applied.
Loading applies the same changes in the same order. Callbacks are those of `groups.events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker.core.groups.share.members import ShareMember
from mockbroker.core.groups.share.partitions import SharePartitions
from mockbroker_protocol import ErrorCode

# --------------------------------------------------------------------------------------- events


class ShareHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """ShareGroupHeartbeat of a member that joins (epoch 0) or stays. None is "unchanged"."""

    callback: object
    member_id: str
    epoch: int
    rack_id: str | None = None
    topic_names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""


class ShareLeave(msgspec.Struct, frozen=True, kw_only=True):
    """ShareGroupHeartbeat with epoch -1."""

    callback: object
    member_id: str


class Stored(msgspec.Struct, frozen=True):
    """The outcome of a Store effect: stored, or failed with `error`."""

    store: Store
    error: ErrorCode


# -------------------------------------------------------------------------------------- changes


class GroupChange(msgspec.Struct, frozen=True):
    """The group epoch, and a hash of the metadata of all subscribed topics. None: deleted."""

    epoch: int | None
    metadata_hash: int = 0


class MemberChange(msgspec.Struct, frozen=True):
    """A member without its epochs and partitions. None: removed."""

    member_id: str
    member: ShareMember | None


class TargetEpochChange(msgspec.Struct, frozen=True):
    """The assignment epoch, and when the assignor finished. None: the target is removed."""

    epoch: int | None
    timestamp_ms: int = 0


class TargetAssignmentChange(msgspec.Struct, frozen=True):
    """A member's target assignment. None: removed."""

    member_id: str
    target: Mapping[bytes, frozenset[int]] | None


class CurrentAssignment(msgspec.Struct, frozen=True):
    """A member's epochs and partitions."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: Mapping[bytes, frozenset[int]]


class CurrentAssignmentChange(msgspec.Struct, frozen=True):
    """A member's current assignment. None: removed."""

    member_id: str
    current: CurrentAssignment | None


class PartitionsChange(msgspec.Struct, frozen=True):
    """The share partitions of the group. None: removed with the group."""

    partitions: SharePartitions | None


Change: TypeAlias = (
    GroupChange
    | MemberChange
    | TargetEpochChange
    | TargetAssignmentChange
    | CurrentAssignmentChange
    | PartitionsChange
)

# The field of each change that is None when the record is a tombstone.
_VALUE_FIELDS: dict[type, str] = {
    GroupChange: "epoch",
    MemberChange: "member",
    TargetEpochChange: "epoch",
    TargetAssignmentChange: "target",
    CurrentAssignmentChange: "current",
    PartitionsChange: "partitions",
}


def is_tombstone(change: Change) -> bool:
    """Whether the change removes something."""
    return getattr(change, _VALUE_FIELDS[type(change)]) is None


def current_assignment_change(member: ShareMember) -> CurrentAssignmentChange:
    """The member's epochs and partitions, as a change."""
    current = CurrentAssignment(member.epoch, member.previous_epoch, member.state, member.assigned)
    return CurrentAssignmentChange(member.member_id, current)


def removal(member_id: str) -> tuple[Change, ...]:
    """The changes that remove a member."""
    return (
        CurrentAssignmentChange(member_id, None),
        TargetAssignmentChange(member_id, None),
        MemberChange(member_id, None),
    )


# -------------------------------------------------------------------------------------- effects


class Initialize(msgspec.Struct, frozen=True):
    """Have the share coordinator initialize share partitions, once the changes are replicated.

    `epoch` is the state epoch: the group epoch of the request.
    """

    which: Mapping[bytes, frozenset[int]]
    epoch: int


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """Store the changes as one batch and report the outcome with a Stored event.

    Once they are stored, `answer` is sent, `timers` are set and `initialize` is carried out. If a
    write without an answer fails, `retry` is set.
    """

    changes: tuple[Change, ...]
    answer: Reply | None = None
    timers: tuple[SetTimer, ...] = ()
    retry: SetTimer | None = None
    initialize: Initialize | None = None


Effect: TypeAlias = Reply | Store | Initialize
