"""Actions on groups: rebalance them, remove members, override assignments.

Each works on groups of all types, with the events and records that requests of clients cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.groups.group import required_members
from mockbroker.core.validation import Count, nearest
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.groups import group as core_group
    from mockbroker.core.groups.shard import GroupShard


class Group(msgspec.Struct, frozen=True):
    """One group."""

    SHORT: ClassVar[str] = "group"

    group: str


class GroupMember(msgspec.Struct, frozen=True):
    """The members of a group whose member id, client id or instance id the glob `member` matches;
    by default all.
    """

    SHORT: ClassVar[str] = "group"

    group: str
    member: str = "*"


class GroupInstance(msgspec.Struct, frozen=True):
    """One static member of a group."""

    group: str
    instance_id: str


class AssignGroup(msgspec.Struct, frozen=True):
    """Assignments, {member: {topic: [partition, …]}}; members are globs as for `expire_member`."""

    group: str
    assignments: dict[str, dict[str, list[Count]]]


class GroupActions:
    """Actions on groups."""

    @action(Group)
    @staticmethod
    def rebalance_group(cluster: ClusterState, wanted: Group) -> None:
        """Start a rebalance: members of a classic group must join again; a group of another type
        gets a new epoch.
        """
        shard, group = find_group(cluster, wanted.group)
        shard.runner(group).rebalance(group)

    @action(GroupMember)
    @staticmethod
    def expire_member(cluster: ClusterState, wanted: GroupMember) -> list[str]:
        """Expire the sessions of members now; returns the members' ids.

        Their next request is refused.
        """
        shard, group = find_group(cluster, wanted.group)
        gone = required_members(group, wanted.member)
        shard.runner(group).expire(group, gone)
        return gone

    @action(GroupMember)
    @staticmethod
    def kick_member(cluster: ClusterState, wanted: GroupMember) -> list[str]:
        """Remove members as Admin.removeMembersFromConsumerGroup does; returns their ids.

        A streams group refuses it, as that request does.
        """
        shard, group = find_group(cluster, wanted.group)
        gone = required_members(group, wanted.member)
        shard.runner(group).kick(group, gone)
        return gone

    @action(GroupInstance)
    @staticmethod
    def fence_instance(cluster: ClusterState, wanted: GroupInstance) -> None:
        """Fence a static member with a new member of its instance id.

        The new member sends no requests. Its session expires after the member's session timeout.
        """
        shard, group = find_group(cluster, wanted.group)
        shard.runner(group).fence_instance(group, wanted.instance_id)

    @action(AssignGroup)
    @staticmethod
    def assign_group(cluster: ClusterState, wanted: AssignGroup) -> None:
        """Override the assignor's assignments; empty assignments remove the override.

        Members of a classic group get them in a rebalance that starts now and in all later ones.
        Members of a consumer group get them with their next heartbeats, until the group changes.
        So do members of a streams group; they get the active tasks that read the partitions.
        """
        shard, group = find_group(cluster, wanted.group)
        shard.runner(group).assign(group, wanted.assignments)


def find_group(cluster: ClusterState, group_id: str) -> tuple[GroupShard, core_group.Group]:
    """A group of any type, and its shard. Raises ActionError."""
    shard = cluster.group_shard(group_id)
    if shard is None:
        raise ActionError(f"group {group_id!r} has no coordinator just now")
    group = shard.groups.get(group_id)
    if group is None:
        known = {
            each
            for broker in cluster.brokers.values()
            if broker.has_groups
            for loaded in broker.groups.shards()
            if not isinstance(loaded, ErrorCode)
            for each in loaded.groups
        }
        raise ActionError(f"there is no group {group_id!r}{nearest(group_id, known)}")
    return shard, group
