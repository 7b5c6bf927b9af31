"""The interface of a group of any type.

A shard keeps its groups in one table by id. Requests for any type of group use this interface;
requests for one type use the runner of the type (`groups.runner`).

Source: org.apache.kafka.coordinator.group.Group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar, Protocol

from mockbroker.core.errors import ActionError

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata
    from mockbroker.core.groups.records import KeyValue
    from mockbroker_protocol import ErrorCode

GROUPS_PER_TURN = 200  # of work on all groups of a shard

# Group.GroupType, as ListGroups spells it.
CLASSIC = "classic"
CONSUMER = "consumer"
STREAMS = "streams"
SHARE = "share"

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupMember(Protocol):
    """A member of any group."""

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...


class Group(Protocol):
    """A group of any type. Checks return the error for the client, or NONE."""

    __slots__ = ()

    group_type: ClassVar[str]
    group_id: str

    @property
    def members(self) -> Mapping[str, GroupMember]:
        """By member id, in a fixed order."""
        ...

    @property
    def state_name(self) -> str:
        """The state's name in responses."""
        ...

    @property
    def protocol_type(self) -> str | None:
        """The protocol type of the members, such as "consumer"; None before the first member."""
        ...

    @property
    def protocol(self) -> str | None:
        """The assignor in use, if the broker has its name."""
        ...

    @property
    def generation_or_epoch(self) -> int: ...

    def is_empty(self) -> bool: ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may be reading `topic`."""
        ...

    # -- validation of requests ------------------------------------------------------------------

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        now_ms: int,
        /,
        *,
        transactional: bool = ...,
        version: int = ...,
    ) -> ErrorCode:
        """OffsetCommit in `version`, or TxnOffsetCommit: validateOffsetCommit. A member's own
        commit may renew its session. If NONE, `check_partition` checks each partition.
        """
        ...

    def check_partition(
        self,
        member_id: str,
        epoch: int,
        topic: str,
        topic_id: bytes,
        partition: int,
        *,
        transactional: bool = ...,
    ) -> ErrorCode:
        """Whether a commit that `check_commit` let pass may be for this partition
        (CommitPartitionValidator).
        """
        ...

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """OffsetFetch: validateOffsetFetch."""
        ...

    def check_offset_delete(self) -> ErrorCode:
        """OffsetDelete: validateOffsetDelete. Subscribed topics are checked separately."""
        ...

    def check_delete(self) -> ErrorCode:
        """DeleteGroups: validateDeleteGroup."""
        ...

    # -- expiration and timers -------------------------------------------------------------------

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """A function of an offset that returns the start of its retention in ms since the epoch;
        None while no offset expires (offsetExpirationCondition).
        """
        ...

    def tombstone_records(self) -> list[KeyValue]:
        """The tombstones of the group's records (createGroupTombstoneRecords)."""
        ...

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, which may find no timer expired; None without timers."""
        ...

    def extend_deadlines(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the timers of connected members by `by_ms`, because the clock is about to advance;
        also those armed during the advance.
        """
        ...


def commit_timestamp_ms(value: OffsetAndMetadata) -> int:
    """The retention of an offset starts with its commit."""
    return value.commit_timestamp_ms


def members_matching(group: Group, pattern: str) -> list[str]:
    """The ids of members whose id, client id or instance id a glob matches."""
    return [
        member_id
        for member_id, member in group.members.items()
        if any(
            fnmatchcase(name, pattern)
            for name in (member_id, member.client_id, member.instance_id)
            if name
        )
    ]


def required_members(group: Group, pattern: str) -> list[str]:
    """The same as `members_matching`. Raises ActionError if no member matches."""
    found = members_matching(group, pattern)
    if not found:
        shown = ", ".join(group.members) or "none"
        raise ActionError(f"group {group.group_id!r} has no member {pattern!r}; it has: {shown}")
    return found
