"""The tasks of assignments that actions make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.groups.streams.configured import ConfiguredSubtopology, configure
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.tasks import TaskSets
from mockbroker.core.validation import nearest


def active_tasks(group: StreamsGroup, topics: Mapping[str, Sequence[int]]) -> TaskSets:
    """The tasks that read partitions of topics, by subtopology. Raises ActionError if no
    subtopology reads a topic.
    """
    topology = group.topology
    found: dict[str, frozenset[int]] = {}
    for topic, partitions in topics.items():
        subtopology = None if topology is None else topology.subtopology_of.get(topic)
        if subtopology is None:
            raise ActionError(
                f"the application of group {group.group_id!r} does not read {topic!r}"
            )
        known = found.get(subtopology.subtopology_id, frozenset())
        found[subtopology.subtopology_id] = known.union(partitions)
    return found


def checked_tasks(group: StreamsGroup, tasks: Mapping[str, Sequence[int]]) -> TaskSets:
    """Tasks by subtopology that the application has. Raises ActionError for others."""
    configured = _subtopologies(group)
    if configured is None:
        raise ActionError(f"the tasks of group {group.group_id!r} are not known yet")
    for subtopology_id, partitions in tasks.items():
        subtopology = configured.get(subtopology_id)
        if subtopology is None:
            raise ActionError(
                f"group {group.group_id!r} has no subtopology {subtopology_id!r}"
                f"{nearest(subtopology_id, configured)}"
            )
        beyond = [each for each in partitions if each >= subtopology.tasks]
        if beyond:
            raise ActionError(
                f"subtopology {subtopology_id!r} of group {group.group_id!r} has tasks 0 to "
                f"{subtopology.tasks - 1}, not {beyond[0]}"
            )
    return {each: frozenset(partitions) for each, partitions in tasks.items() if partitions}


def _subtopologies(group: StreamsGroup) -> Mapping[str, ConfiguredSubtopology] | None:
    """The subtopologies with their tasks; None as long as topics are missing."""
    if group.configured is not None or group.topology is None:
        return None if group.configured is None else group.configured.subtopologies
    try:
        tasks_max = group.settings.tasks_max
        return configure(group.topology, group.partition_count, tasks_max).subtopologies
    except ApiError:
        return None
