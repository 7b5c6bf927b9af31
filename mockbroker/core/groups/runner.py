"""The runner of the groups of one type in a shard: events in, effects out.

A group is a state machine that does no I/O. Its runner passes events to it and carries out the
effects. A new type of group needs a machine that is a `Group`, a runner, an entry in the shard's
table of runners, and its record types in the loader's table.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from mockbroker.core.groups.events import LeaveResult, LeftMember
from mockbroker.core.groups.group import Group
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.events import Join, Leave, Loaded, Sync, Tick
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker_protocol.records import Record

G = TypeVar("G", bound=Group)

# By member (a glob on its id, client id or instance id): topic -> partitions.
Assignments = Mapping[str, Mapping[str, Sequence[int]]]


class GroupRunner(ABC, Generic[G]):
    """The groups of one type in a shard. Each method's `group` is in the shard's table."""

    __slots__ = ("_runtime", "_shard")

    group_type: ClassVar[str]

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self._runtime = shard.coordinator.runtime

    def get(self, group_id: str) -> G | None:
        """The group with this id, or None if it does not exist or has another type."""
        group = self._shard.groups.get(group_id)
        return (
            cast("G", group) if group is not None and group.group_type == self.group_type else None
        )

    def all(self) -> dict[str, G]:
        """The groups of this type by id, the oldest first."""
        found = ((group_id, self.get(group_id)) for group_id in self._shard.groups)
        return {group_id: group for group_id, group in found if group is not None}

    @abstractmethod
    def replay_record(self, record: Record, now_ms: int) -> None:
        """Apply a record of this type of group from the log.

        Raises DecodeError or UnknownVersionError if key or value cannot be decoded.
        """

    @abstractmethod
    def run(self, group: G, event: Tick | Loaded) -> None:
        """Pass an event to the group, carry out its effects, and arm its timer."""

    @abstractmethod
    def unload(self, group: G) -> None:
        """Answer the waiting requests, because the shard is unloaded."""

    @abstractmethod
    def on_deleted(self, group: G) -> None:
        """Mark the empty group as Dead, because its tombstones are in the log."""

    # -- requests of the classic protocol --------------------------------------------------------

    @abstractmethod
    def join(self, group: G, join: Join) -> None:
        """JoinGroup."""

    @abstractmethod
    def sync(self, group: G, sync: Sync) -> None:
        """SyncGroup."""

    @abstractmethod
    def heartbeat(
        self, group: G, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat; returns the error code of the response."""

    @abstractmethod
    def leave(self, group: G, leave: Leave) -> None:
        """LeaveGroup."""

    # -- actions ---------------------------------------------------------------------------------

    @abstractmethod
    def rebalance(self, group: G) -> None:
        """Start a rebalance. Raises ActionError if a classic group has no members."""

    @abstractmethod
    def expire(self, group: G, member_ids: Sequence[str]) -> None:
        """Expire the sessions of members."""

    @abstractmethod
    def kick(self, group: G, member_ids: Sequence[str]) -> None:
        """Remove members as an administrator does."""

    @abstractmethod
    def fence_instance(self, group: G, instance_id: str) -> None:
        """Fence a static member with a new member of its instance id.

        Raises ActionError if no member has the instance id.
        """

    @abstractmethod
    def assign(self, group: G, assignments: Assignments) -> None:
        """Override the assignments; empty `assignments` remove the override.

        Raises ActionError for members and topics that do not exist.
        """


def answer(callback: object, result: object) -> None:
    """Call the callback of a request with its result."""
    cast("Callable[[object], None]", callback)(result)


def ignore_result(_: object) -> None:
    """The callback of an event without a client's request."""


def unknown_members(leave: Leave) -> LeaveResult:
    """The answer to a LeaveGroup of a group that has no classic members."""
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    return LeaveResult(
        ErrorCode.NONE,
        tuple(LeftMember(each.member_id, each.instance_id, unknown) for each in leave.members),
    )
