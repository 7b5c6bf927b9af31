"""Actions on groups: rebalance them, remove members, set who reads what.

Each works on groups of all types, through the events and records that clients cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.groups.group import required_members
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.validation import Count
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
    """Members of a group: a glob on member id, client id or instance id; without it all."""

    SHORT: ClassVar[str] = "group"

    group: str
    member: str = "*"


class GroupInstance(msgspec.Struct, frozen=True):
    """One static member of a group."""

    group: str
    instance_id: str


class AssignGroup(msgspec.Struct, frozen=True):
    """Who reads what: {member: {topic: [partition, …]}}; members as for `expire_member`."""

    group: str
    assignments: dict[str, dict[str, list[Count]]]


class GroupActions:
    """Actions on groups."""

    @action(Group)
    @staticmethod
    def rebalance_group(cluster: ClusterState, wanted: Group) -> None:
        """Begin a round: classic members have to join again; the new protocol's get a new epoch."""
        shard, group = _group(cluster, wanted.group)
        shard.runner(group).rebalance(group)

    @action(GroupMember)
    @staticmethod
    def expire_member(cluster: ClusterState, wanted: GroupMember) -> list[str]:
        """Let the sessions of members expire now, and return the members' ids.

        Their next request is refused.
        """
        shard, group = _group(cluster, wanted.group)
        gone = required_members(group, wanted.member)
        shard.runner(group).expire(group, gone)
        return gone

    @action(GroupMember)
    @staticmethod
    def kick_member(cluster: ClusterState, wanted: GroupMember) -> list[str]:
        """Remove members as an administrator does (removeMembersFromConsumerGroup); their ids."""
        shard, group = _group(cluster, wanted.group)
        gone = required_members(group, wanted.member)
        shard.runner(group).kick(group, gone)
        return gone

    @action(GroupInstance)
    @staticmethod
    def fence_instance(cluster: ClusterState, wanted: GroupInstance) -> None:
        """Let another process take a static member's place: the one that is there is fenced.

        The new one is nobody: it does nothing, and its session ends after the member's timeout.
        """
        shard, group = _group(cluster, wanted.group)
        shard.runner(group).fence_instance(group, wanted.instance_id)

    @action(AssignGroup)
    @staticmethod
    def assign_group(cluster: ClusterState, wanted: AssignGroup) -> None:
        """Set who reads what, whatever the assignor says; no assignments: the assignor's again.

        Members of a classic group get it with the round that begins now and those to come;
        members of the new protocol with their next heartbeats, until the group changes.
        """
        shard, group = _group(cluster, wanted.group)
        shard.runner(group).assign(group, wanted.assignments)


def _group(cluster: ClusterState, group_id: str) -> tuple[GroupShard, core_group.Group]:
    index = cluster.find_coordinator_partition(group_id)
    partition = cluster.partition(GROUP_METADATA_TOPIC, index)
    leader = None if partition is None else cluster.brokers.get(partition.leader_id)
    shard = None if leader is None else leader.groups.shard_of(group_id)
    if shard is None or isinstance(shard, ErrorCode):
        raise ActionError(f"group {group_id!r} has no coordinator just now")
    group = shard.groups.get(group_id)
    if group is None:
        raise ActionError(f"there is no group {group_id!r}")
    return shard, group
