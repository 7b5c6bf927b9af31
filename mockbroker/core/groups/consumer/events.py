"""The events, effects and stored changes of a consumer group.

All are frozen. The machine of a group computes *changes*; each is one record of
`__consumer_offsets`. A Store effect requests that they are stored, and stored changes are applied.
Loading applies the same changes in the same order. Callbacks are those of `groups.events`.
JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members are the events of that module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker_protocol import ErrorCode

# --------------------------------------------------------------------------------------- events


class ConsumerHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat of a member that joins (epoch 0) or stays. None is "unchanged".

    `reported` are the partitions that the member owns. The member id is never empty.
    """

    callback: object
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topic_names: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    reported: Mapping[bytes, tuple[int, ...]] | None = None
    client_id: str = ""
    client_host: str = ""


class ConsumerLeave(msgspec.Struct, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat with epoch -1, or -2 of a static member that may return."""

    callback: object
    member_id: str
    epoch: int
    instance_id: str | None = None


class RegexesResolved(msgspec.Struct, frozen=True):
    """The result of ResolveRegexes: the topics of each regex, in a version of the metadata."""

    topics: Mapping[str, frozenset[str]]
    version: int
    timestamp_ms: int


class Stored(msgspec.Struct, frozen=True):
    """The outcome of a Store effect: stored, or failed with `error`."""

    store: Store
    error: ErrorCode


# -------------------------------------------------------------------------------------- changes


class GroupChange(msgspec.Struct, frozen=True):
    """The group epoch, and a hash of the metadata of all subscribed topics. None: deleted."""

    epoch: int | None
    metadata_hash: int = 0


class SubscriptionMetadataTombstone(msgspec.Struct, frozen=True):
    """Removes a record that releases before 4.1 wrote; part of every deletion of a group."""


class MemberChange(msgspec.Struct, frozen=True):
    """A member without its epochs and partitions. None: removed."""

    member_id: str
    member: ConsumerMember | None


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
    state: MemberState
    assigned: Mapping[bytes, Mapping[int, int]]
    revoking: Mapping[bytes, Mapping[int, int]]


class CurrentAssignmentChange(msgspec.Struct, frozen=True):
    """A member's current assignment. None: removed."""

    member_id: str
    current: CurrentAssignment | None


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that match a regex, in a version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class RegexChange(msgspec.Struct, frozen=True):
    """The topics of a regex. None: no member subscribes to it."""

    regex: str
    resolved: ResolvedRegex | None


Change: TypeAlias = (
    GroupChange
    | SubscriptionMetadataTombstone
    | MemberChange
    | TargetEpochChange
    | TargetAssignmentChange
    | CurrentAssignmentChange
    | RegexChange
)

# The field of each change that is None when the record is a tombstone.
_VALUE_FIELDS: dict[type, str] = {
    GroupChange: "epoch",
    MemberChange: "member",
    TargetEpochChange: "epoch",
    TargetAssignmentChange: "target",
    CurrentAssignmentChange: "current",
    RegexChange: "resolved",
}


def is_tombstone(change: Change) -> bool:
    """Whether the record of the change is a tombstone."""
    field = _VALUE_FIELDS.get(type(change))
    return field is None or getattr(change, field) is None


def current_assignment_change(member: ConsumerMember) -> CurrentAssignmentChange:
    """The change with a member's epochs and partitions."""
    current = CurrentAssignment(
        member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking
    )
    return CurrentAssignmentChange(member.member_id, current)


def removal(member_id: str) -> tuple[Change, ...]:
    """The changes that remove a member."""
    return (
        CurrentAssignmentChange(member_id, None),
        TargetAssignmentChange(member_id, None),
        MemberChange(member_id, None),
    )


# -------------------------------------------------------------------------------------- effects


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """Store the changes as one batch and report the outcome with a Stored event.

    Once they are stored, `answer` is sent and `timers` are set. If a write without an answer fails,
    `retry` is set.
    """

    changes: tuple[Change, ...]
    answer: Reply | None = None
    timers: tuple[SetTimer, ...] = ()
    retry: SetTimer | None = None


class ResolveRegexes(msgspec.Struct, frozen=True):
    """Find the matching topics and report them with a RegexesResolved event, after the answer."""

    regexes: frozenset[str]


class Downgrade(msgspec.Struct, frozen=True, kw_only=True):
    """Downgrade to a classic group, because the last member of the consumer protocol has left.

    `leaving` members are removed. `joining` is a static member that changes its protocol. With a
    `rebalance` reason the classic group begins with a rebalance.
    """

    leaving: frozenset[str] = frozenset()
    joining: ConsumerMember | None = None
    rebalance: str | None
    answer: Reply | None
    retry: SetTimer | None = None


Effect: TypeAlias = Reply | Store | ResolveRegexes | Downgrade
