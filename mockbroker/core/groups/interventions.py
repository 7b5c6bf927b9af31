"""What people, tests and rules may do to a group: rebalance it, send members away, set who reads
what.

Each works on groups of both protocols, through the events and records that clients cause. Raises
ActionError, and then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.consumer.events import (
    Change,
    ConsumerHeartbeat,
    ConsumerLeave,
    GroupChange,
    TargetChange,
    TargetEpochChange,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.states import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from mockbroker.core.groups.events import EndSession, Join, Leave, Leaver, Rebalance, Sync
from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import encode_assignment
from mockbroker_protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
)

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.shard import GroupShard

# By member (a glob on its id, client id or instance id): topic -> partitions.
Assignments = Mapping[str, Mapping[str, Sequence[int]]]


def rebalance_group(cluster: Cluster, group_id: str) -> None:
    """Begin a round: classic members have to join again; the new protocol's get a new epoch."""
    shard, group = _group(cluster, group_id)
    if isinstance(group, ConsumerGroup):
        epoch = GroupChange(group.epoch + 1, group.metadata_hash)
        shard.consumers.change(group_id, (epoch,))
        return
    if not group.roster.members:
        raise ActionError(f"group {group_id!r} has no members")
    _tell(shard, group, Rebalance("somebody asked for it"))


def expire_member(cluster: Cluster, group_id: str, member: str) -> list[str]:
    """Let the sessions of members end now; they do not know until they ask. The ids of those."""
    shard, group = _group(cluster, group_id)
    gone = _members(group, member)
    if isinstance(group, ConsumerGroup):
        for member_id in gone:
            _leave(shard, group_id, member_id, None, LEAVE_EPOCH)
        return gone
    for member_id in gone:
        _tell(shard, group, EndSession(member_id))
    return gone


def kick_member(cluster: Cluster, group_id: str, member: str) -> list[str]:
    """Remove members as an administrator does (removeMembersFromConsumerGroup); their ids."""
    shard, group = _group(cluster, group_id)
    gone = _members(group, member)
    if isinstance(group, ConsumerGroup):
        for member_id in gone:
            _leave(shard, group_id, member_id, group.members[member_id].instance_id, LEAVE_EPOCH)
        return gone
    leavers = tuple(Leaver(m, group.roster.members[m].instance_id) for m in gone)
    shard.leave(group_id, Leave(_nobody, leavers))
    return gone


def fence_instance(cluster: Cluster, group_id: str, instance_id: str) -> None:
    """Let another process take a static member's place: the one that is there is fenced.

    The new one is nobody: it does nothing, and its session ends after the member's timeout.
    """
    shard, group = _group(cluster, group_id)
    if isinstance(group, ConsumerGroup):
        _replace_instance(cluster, shard, group, instance_id)
        return
    member_id = group.roster.static.get(instance_id)
    if member_id is None:
        raise ActionError(f"group {group_id!r} has no static member {instance_id!r}")
    member = group.roster.members[member_id]
    shard.join(
        group_id,
        Join(
            slot=_nobody,
            member_id="",
            new_member_id=f"{instance_id}-{cluster.ids.member_suffix()}",
            instance_id=instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            protocol_type=group.roster.protocol_type or "",
            protocols=member.protocols,
            member_id_required=False,
        ),
    )


def assign_group(cluster: Cluster, group_id: str, assignments: Assignments) -> None:
    """Set who reads what, whatever the assignor says; no assignments: the assignor's again.

    Members of a classic group get it with the round that begins now and those to come; members of
    the new protocol with their next heartbeats, until the group changes.
    """
    shard, group = _group(cluster, group_id)
    if isinstance(group, ConsumerGroup):
        _set_targets(cluster, shard, group, assignments)
        return
    for pattern in assignments:
        _members(group, pattern)
    shard.forced.pop(group_id, None)
    if assignments:
        encoded = {pattern: _encoded(topics) for pattern, topics in assignments.items()}
        shard.forced[group_id] = partial(_forced, group, encoded)
    _tell(shard, group, Rebalance("an assignment was set"))


def _forced(group: ClassicGroup, forced: Mapping[str, bytes], sync: Sync) -> Sync:
    """A leader's SyncGroup with the assignments that were set in the place of its own."""
    made = dict(sync.assignments)
    for pattern, assignment in forced.items():
        for member_id in _matching(group, pattern):
            made[member_id] = assignment
    return msgspec.structs.replace(sync, assignments=made)


def _tell(shard: GroupShard, group: ClassicGroup, event: Rebalance | EndSession) -> None:
    shard._run(group, event, shard.now_ms(group.group_id))


# -- groups and members ----------------------------------------------------------------------------


def _group(cluster: Cluster, group_id: str) -> tuple[GroupShard, ClassicGroup | ConsumerGroup]:
    index = cluster.find_coordinator_partition(group_id)
    partition = cluster.partition(GROUP_METADATA_TOPIC, index)
    leader = None if partition is None else cluster.brokers.get(partition.leader_id)
    shard = None if leader is None else leader.groups.shard_of(group_id)
    if shard is None or isinstance(shard, ErrorCode):
        raise ActionError(f"group {group_id!r} has no coordinator just now")
    group = shard.groups.get(group_id) or shard.consumers.groups.get(group_id)
    if group is None:
        raise ActionError(f"there is no group {group_id!r}")
    return shard, group


def _members(group: ClassicGroup | ConsumerGroup, pattern: str) -> list[str]:
    """The ids of the members that a pattern means. Raises ActionError if there is none."""
    found = _matching(group, pattern)
    if not found:
        known = group.roster.members if isinstance(group, ClassicGroup) else group.members
        shown = ", ".join(known) or "none"
        raise ActionError(f"group {group.group_id!r} has no member {pattern!r}; it has: {shown}")
    return found


def _matching(group: ClassicGroup | ConsumerGroup, pattern: str) -> list[str]:
    members = group.roster.members if isinstance(group, ClassicGroup) else group.members
    return [
        member_id
        for member_id, member in members.items()
        if any(
            fnmatchcase(name, pattern)
            for name in (member_id, member.client_id, member.instance_id)
            if name
        )
    ]


def _nobody(_: object) -> None:
    """Takes the answer to what no client has asked."""


# -- the new protocol ------------------------------------------------------------------------------


def _leave(
    shard: GroupShard, group_id: str, member_id: str, instance_id: str | None, epoch: int
) -> None:
    leave = ConsumerLeave(slot=_nobody, member_id=member_id, epoch=epoch, instance_id=instance_id)
    shard.consumers.leave(group_id, leave)


def _replace_instance(
    cluster: Cluster, shard: GroupShard, group: ConsumerGroup, instance_id: str
) -> None:
    member = group.static_member(instance_id)
    if member is None:
        raise ActionError(f"group {group.group_id!r} has no static member {instance_id!r}")
    _leave(shard, group.group_id, member.member_id, instance_id, STATIC_LEAVE_EPOCH)
    beat = ConsumerHeartbeat(
        slot=_nobody,
        member_id=cluster.ids.member_suffix(),
        epoch=0,
        instance_id=instance_id,
        rack_id=member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topic_names=member.topic_names,
        regex=member.regex or None,
        assignor=member.assignor,
        reported={},
        client_id=member.client_id,
        client_host=member.client_host,
    )
    shard.consumers.heartbeat(group.group_id, beat)


def _set_targets(
    cluster: Cluster, shard: GroupShard, group: ConsumerGroup, assignments: Assignments
) -> None:
    epoch = group.epoch + 1
    changes: list[Change] = [GroupChange(epoch, group.metadata_hash)]
    for pattern, topics in assignments.items():
        target = {_topic_id(cluster, topic): frozenset(ps) for topic, ps in topics.items()}
        changes += (TargetChange(member_id, target) for member_id in _members(group, pattern))
    if assignments:
        changes.append(TargetEpochChange(epoch, cluster.now_ms()))
    shard.consumers.change(group.group_id, tuple(changes))


def _topic_id(cluster: Cluster, name: str) -> bytes:
    topic = cluster.topics.get(name)
    if topic is None:
        raise ActionError(f"there is no topic {name!r}")
    return topic.topic_id


def _encoded(topics: Mapping[str, Sequence[int]]) -> bytes:
    """An assignment as members of the consumer protocol read it."""
    return encode_assignment(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartition(topic, list(partitions)) for topic, partitions in topics.items()
            ]
        ),
        0,
    )
