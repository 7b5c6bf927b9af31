"""A new target assignment of a group. Source: TargetAssignmentBuilder."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.groups.modern.events import StoredChange
from mockbroker.core.groups.modern.heartbeat import target_changes
from mockbroker.core.groups.streams.configured import ConfiguredTopology
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.sticky import (
    AssignedMember,
    AssignedSubtopology,
    assign_sticky,
)
from mockbroker.core.groups.streams.tasks import NO_TASKS, Tasks


def new_targets(
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    configured: ConfiguredTopology,
    epoch: int,
    now_ms: int,
) -> tuple[Mapping[str, Tasks], list[StoredChange]]:
    """The targets of `members` at an assignment epoch, and the changes that store them.

    No member gets a task as long as the topology is not ready.
    """
    if configured.is_ready and configured.subtopologies is not None:
        targets = assign_sticky(
            {
                member_id: AssignedMember(member.process_id, group.target_of(member_id))
                for member_id, member in members.items()
            },
            {
                each: AssignedSubtopology(subtopology.tasks, subtopology.is_stateful)
                for each, subtopology in configured.subtopologies.items()
            },
            group.settings.standby_replicas,
        )
    else:
        targets = dict.fromkeys(members, NO_TASKS)
    return targets, target_changes(group, members, targets, NO_TASKS, epoch, now_ms)
