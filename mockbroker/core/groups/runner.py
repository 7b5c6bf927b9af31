"""Running the groups of one type: events in, effects out, for one shard.

A group is a state machine that does no I/O. Its runner passes events to it and carries out the
effects. A shard has one runner for each type of group; a type that is added
needs a machine that is a `Group`, a runner, and an entry in the shard's table of runners.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from mockbroker.core.groups.group import Group

if TYPE_CHECKING:
    from mockbroker.core.groups.events import Join, Leave, Loaded, Sync, Tick
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker_protocol import ErrorCode

G = TypeVar("G", bound=Group)

# By member (a glob on its id, client id or instance id): topic -> partitions.
Assignments = Mapping[str, Mapping[str, Sequence[int]]]


class GroupRunner(ABC, Generic[G]):
    """The groups of one type in a shard. What is handed in is in the shard's table of groups."""

    __slots__ = ("_runtime", "_shard")

    group_type: ClassVar[str]

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self._runtime = shard.coordinator.runtime

    def get(self, group_id: str) -> G | None:
        """The group of this id; None if there is none, or one of another type."""
        group = self._shard.groups.get(group_id)
        return (
            cast("G", group) if group is not None and group.group_type == self.group_type else None
        )

    def all(self) -> dict[str, G]:
        """The groups of this type, by id, in the order in which they came."""
        found = ((group_id, self.get(group_id)) for group_id in self._shard.groups)
        return {group_id: group for group_id, group in found if group is not None}

    @abstractmethod
    def run(self, group: G, event: Tick | Loaded) -> None:
        """Pass an event to the group, carry out its effects, and arm its timer."""

    @abstractmethod
    def unload(self, group: G) -> None:
        """The shard is unloaded: answer the waiting requests."""

    @abstractmethod
    def deleted(self, group: G) -> None:
        """The tombstones of the group, which is empty, are in the log."""

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
        """Heartbeat: the answer."""

    @abstractmethod
    def leave(self, group: G, leave: Leave) -> None:
        """LeaveGroup."""

    # -- actions ---------------------------------------------------------------------------------

    @abstractmethod
    def rebalance(self, group: G) -> None:
        """Begin a round. Raises ActionError where that takes members and there are none."""

    @abstractmethod
    def expire(self, group: G, member_ids: Sequence[str]) -> None:
        """Let the sessions of members expire."""

    @abstractmethod
    def kick(self, group: G, member_ids: Sequence[str]) -> None:
        """Remove members as an administrator does."""

    @abstractmethod
    def fence_instance(self, group: G, instance_id: str) -> None:
        """Let another process take a static member's place. Raises ActionError if there is none."""

    @abstractmethod
    def assign(self, group: G, assignments: Assignments) -> None:
        """Set who reads what; without assignments that is the assignor's to say again. Raises
        ActionError for members and topics that are not there.
        """


def answer(callback: object, result: object) -> None:
    """Finish the request that a callback stands for."""
    cast("Callable[[object], None]", callback)(result)


def ignore_result(_: object) -> None:
    """The callback of an event that no client has sent."""
