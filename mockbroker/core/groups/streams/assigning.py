"""The tasks that read given partitions, for the action `assign_group`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.tasks import TaskSets


def active_tasks(group: StreamsGroup, topics: Mapping[str, Sequence[int]]) -> TaskSets:
    """The tasks by subtopology. Raises ActionError if no subtopology reads a topic."""
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
