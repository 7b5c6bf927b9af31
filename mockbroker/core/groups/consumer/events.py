"""The events, effects and stored changes of a consumer group.

All are frozen. A group never changes its state by itself: it works out *changes*, each of which is
one record of `__consumer_offsets`, and asks for them to be stored. Once they are, they are applied;
applying the same changes in the same order is also how a group is read back from the log. Slots are
those of `groups.events`; JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members arrive
as the events of that module.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.events import Reply
from mockbroker_protocol import ErrorCode

# --------------------------------------------------------------------------------------- events


class ConsumerHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat of a member that joins (epoch 0) or stays. What is None is unchanged.

    `reported` are the partitions the member owns. The member id is never empty: whoever sends the
    event has drawn one.
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
    """ConsumerGroupHeartbeat with epoch -1: gone, or -2: a static member that may come back."""

    callback: object
    member_id: str
    epoch: int
    instance_id: str | None = None


class RegexesResolved(msgspec.Struct, frozen=True):
    """What ResolveRegexes asked for: the topics of each regex, as of a version of the metadata."""

    topics: Mapping[str, frozenset[str]]
    version: int
    timestamp_ms: int


class Stored(msgspec.Struct, frozen=True):
    """What a Store effect asked for is in the log, or is not, because of `error`."""

    store: Store
    error: ErrorCode


# -------------------------------------------------------------------------------------- changes


class GroupChange(msgspec.Struct, frozen=True):
    """The group epoch, and a hash of the metadata of all subscribed topics. None: it is gone."""

    epoch: int | None
    metadata_hash: int = 0


class SubscriptionMetadataGone(msgspec.Struct, frozen=True):
    """Removes a record that releases before 4.1 wrote; part of every deletion of a group."""


class MemberChange(msgspec.Struct, frozen=True):
    """Everything about a member but its epochs and partitions. None: it is gone."""

    member_id: str
    member: ConsumerMember | None


class TargetEpochChange(msgspec.Struct, frozen=True):
    """The assignment epoch, and when the assignor finished. None: there is no target any more."""

    epoch: int | None
    timestamp_ms: int = 0


class TargetChange(msgspec.Struct, frozen=True):
    """What a member is to own in the end. None: it is gone."""

    member_id: str
    target: Mapping[bytes, frozenset[int]] | None


class Current(msgspec.Struct, frozen=True):
    """A member's epochs and partitions."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Mapping[bytes, Mapping[int, int]]
    revoking: Mapping[bytes, Mapping[int, int]]


class CurrentChange(msgspec.Struct, frozen=True):
    """What a member owns now. None: it is gone."""

    member_id: str
    current: Current | None


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics a regex stands for, as of a version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class RegexChange(msgspec.Struct, frozen=True):
    """What a regex stands for. None: nobody subscribes to it any more."""

    regex: str
    resolved: ResolvedRegex | None


Change: TypeAlias = (
    GroupChange
    | SubscriptionMetadataGone
    | MemberChange
    | TargetEpochChange
    | TargetChange
    | CurrentChange
    | RegexChange
)

# The field of each change that is None when the record is a tombstone.
_VALUE_FIELDS: dict[type, str] = {
    GroupChange: "epoch",
    MemberChange: "member",
    TargetEpochChange: "epoch",
    TargetChange: "target",
    CurrentChange: "current",
    RegexChange: "resolved",
}


def is_tombstone(change: Change) -> bool:
    """Whether the change says that something is gone."""
    field = _VALUE_FIELDS.get(type(change))
    return field is None or getattr(change, field) is None


def current_change(member: ConsumerMember) -> CurrentChange:
    """The change that writes down a member's epochs and partitions."""
    current = Current(
        member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking
    )
    return CurrentChange(member.member_id, current)


def removal(member_id: str) -> tuple[Change, ...]:
    """The changes that end a member."""
    return (
        CurrentChange(member_id, None),
        TargetChange(member_id, None),
        MemberChange(member_id, None),
    )


# -------------------------------------------------------------------------------------- effects


class TimerKind(Enum):
    """Why a member may be sent away: each member has at most one timer of a kind."""

    SESSION = "it has been silent for too long"
    REBALANCE = "it did not give partitions up in time"
    JOIN = "a classic member did not join again in time"
    SYNC = "a classic member did not fetch its assignment in time"


class SetTimer(msgspec.Struct, frozen=True):
    """Have a timer of a member end at `deadline_ms`; None: never.

    `member_epoch`, if given: only if the member is still at that epoch then. `keep`: not if the
    timer runs already.
    """

    kind: TimerKind
    member_id: str
    deadline_ms: int | None
    member_epoch: int | None = None
    keep: bool = False


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """Store the changes as one batch and say how it went with a Stored event.

    `answer` is due once they are stored, `timers` are set then. If nobody waits for an answer and
    storing fails, `retry` is set instead.
    """

    changes: tuple[Change, ...]
    answer: Reply | None = None
    timers: tuple[SetTimer, ...] = ()
    retry: SetTimer | None = None


class ResolveRegexes(msgspec.Struct, frozen=True):
    """Look up the topics that match and say so with a RegexesResolved event, after answering."""

    regexes: frozenset[str]


class Downgrade(msgspec.Struct, frozen=True, kw_only=True):
    """Turn the group into a classic one: the last member of the new protocol has gone.

    `leaving` members do not come along, `joining`, a static member that changes its protocol, does.
    With a `rebalance` reason the classic group begins with a round.
    """

    leaving: frozenset[str] = frozenset()
    joining: ConsumerMember | None = None
    rebalance: str | None
    answer: Reply | None
    retry: SetTimer | None = None


Effect: TypeAlias = Reply | Store | ResolveRegexes | Downgrade
