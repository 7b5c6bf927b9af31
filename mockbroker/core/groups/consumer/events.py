"""The events, effects and stored changes that only a consumer group has; see `modern.events`.

JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members are those of `groups.events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.events import Store, StoredChange
from mockbroker.core.groups.modern.timers import SetTimer

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


# -------------------------------------------------------------------------------------- changes


class SubscriptionMetadataTombstone(StoredChange, frozen=True):
    """Removes a record that releases before 4.1 wrote; part of every deletion of a group."""

    value_field = "value"
    value: None = None


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that match a regex, in a version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class RegexChange(StoredChange, frozen=True):
    """The topics of a regex. None: no member subscribes to it."""

    value_field = "resolved"
    regex: str
    resolved: ResolvedRegex | None


# -------------------------------------------------------------------------------------- effects


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
