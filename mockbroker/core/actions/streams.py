"""Actions on streams groups (KIP-1071): statuses that members get, internal topics, tasks.

Their settings of a group are not in the log: they end when the group's coordinator moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mockbroker.core.actions.groups import find_group
from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.groups.group import STREAMS, required_members
from mockbroker.core.validation import Count, nearest

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.groups.streams.group import StreamsGroup
    from mockbroker.core.groups.streams.shard import StreamsGroups
    from mockbroker.core.groups.streams.tasks import TaskSets

TaskLists: TypeAlias = dict[str, list[Count]]


class StaleTopology(msgspec.Struct, frozen=True):
    """The members of a streams group that the glob `member` matches, by default all; until
    `release`.
    """

    group: str
    member: str = "*"
    release: bool = False


class LoseInternalTopic(msgspec.Struct, frozen=True):
    """A streams group and one of its internal topics; until `release`."""

    group: str
    topic: str
    release: bool = False


class TaskAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a member by kind, {subtopology: [partition, …]}; a kind that is left out stays
    as it is.
    """

    active: TaskLists | None = None
    standby: TaskLists | None = None
    warmup: TaskLists | None = None


class AssignTasks(msgspec.Struct, frozen=True):
    """Tasks, {member: {kind: {subtopology: [partition, …]}}}; members are globs as for
    `expire_member`.
    """

    group: str
    tasks: dict[str, TaskAssignment]


class ShutDownApplication(msgspec.Struct, frozen=True):
    """A streams group, and the first member that the glob `member` matches."""

    group: str
    member: str = "*"


class StreamsActions:
    """Actions on streams groups."""

    @action(StaleTopology)
    @staticmethod
    def report_stale_topology(cluster: ClusterState, wanted: StaleTopology) -> list[str]:
        """Tell members in each heartbeat that their topology is stale (STALE_TOPOLOGY); returns
        their ids.

        They keep their tasks.
        """
        _, group = _streams_group(cluster, wanted.group)
        chosen = required_members(group, wanted.member)
        if wanted.release:
            group.stale_members.difference_update(chosen)
        else:
            group.stale_members.update(chosen)
        return chosen

    @action(LoseInternalTopic)
    @staticmethod
    def lose_internal_topic(cluster: ClusterState, wanted: LoseInternalTopic) -> None:
        """Let a streams group see one of its internal topics no longer.

        Its members get MISSING_INTERNAL_TOPICS and lose their tasks. The topic itself stays as it
        is, and nobody creates it.
        """
        _, group = _streams_group(cluster, wanted.group)
        known = [] if group.topology is None else group.topology.internal_topics()
        if wanted.topic not in known:
            hint = nearest(wanted.topic, known) or "; it has none"
            raise ActionError(
                f"streams group {wanted.group!r} has no internal topic {wanted.topic!r}{hint}"
            )
        if wanted.release and wanted.topic not in group.lost_topics:
            raise ActionError(f"streams group {wanted.group!r} has not lost {wanted.topic!r}")
        group.lose_topic(wanted.topic, lost=not wanted.release)

    @action(AssignTasks)
    @staticmethod
    def assign_tasks(cluster: ClusterState, wanted: AssignTasks) -> None:
        """Override the assignor's tasks of a streams group; empty `tasks` remove the override.

        Members get them with their next heartbeats, until the group changes. A warm-up task, which
        no assignor of Kafka 4.3 hands out, can be forced in this way.
        """
        from mockbroker.core.groups.streams.assigning import checked_tasks
        from mockbroker.core.groups.streams.tasks import Tasks

        runner, group = _streams_group(cluster, wanted.group)

        def checked(given: Mapping[str, Sequence[int]] | None, present: TaskSets) -> TaskSets:
            return present if given is None else checked_tasks(group, given)

        targets: dict[str, Tasks] = {}
        for pattern, each in wanted.tasks.items():
            for member_id in required_members(group, pattern):
                present = targets.get(member_id) or group.target_of(member_id)
                targets[member_id] = Tasks(
                    checked(each.active, present.active),
                    checked(each.standby, present.standby),
                    checked(each.warmup, present.warmup),
                )
        runner.store_targets(group, targets)

    @action(ShutDownApplication)
    @staticmethod
    def shut_down_application(cluster: ClusterState, wanted: ShutDownApplication) -> str:
        """Tell all members that one of them requested a shutdown of the application; returns its
        id.

        Each gets SHUTDOWN_APPLICATION with its heartbeats until all members have left.
        """
        _, group = _streams_group(cluster, wanted.group)
        group.shutdown_by = required_members(group, wanted.member)[0]
        return group.shutdown_by


def _streams_group(cluster: ClusterState, group_id: str) -> tuple[StreamsGroups, StreamsGroup]:
    shard, group = find_group(cluster, group_id)
    if group.group_type != STREAMS:
        raise ActionError(f"group {group_id!r} is a {group.group_type} group, not a streams group")
    runner = shard.streams
    found = runner.get(group_id)
    assert found is not None
    return runner, found
