"""The partitions of each process, for interactive queries.

Source: EndpointToPartitionsManager.
"""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.streams.configured import ConfiguredTopology
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.results import EndpointPartitions, PartitionLines
from mockbroker.core.groups.streams.tasks import TaskSets
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode


def endpoint_partitions(
    group: StreamsGroup, updated: StreamsMember, configured: ConfiguredTopology
) -> tuple[EndpointPartitions, ...]:
    """The partitions of each member that has an endpoint, `updated` last.

    Raises ApiError, UNKNOWN_SERVER_ERROR, where Kafka's coordinator runs into an exception: a
    member has an endpoint while the tasks are not known or a topic does not exist.
    """
    others = [each for each in group.members.values() if each.member_id != updated.member_id]
    return tuple(
        _of_member(group, each, configured) for each in (*others, updated) if each.endpoint
    )


def _of_member(
    group: StreamsGroup, member: StreamsMember, configured: ConfiguredTopology
) -> EndpointPartitions:
    assert member.endpoint is not None
    active = {each: frozenset(epochs) for each, epochs in member.assigned.active.items()}
    return EndpointPartitions(
        member.endpoint,
        _partitions(group, active, configured),
        _partitions(group, member.assigned.standby, configured),
    )


def _partitions(
    group: StreamsGroup, tasks: TaskSets, configured: ConfiguredTopology
) -> PartitionLines:
    if configured.subtopologies is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    lines: list[tuple[str, tuple[int, ...]]] = []
    for subtopology_id in sorted(tasks):
        subtopology = configured.subtopologies.get(subtopology_id)
        if subtopology is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        partitions = sorted(tasks[subtopology_id])
        topics = dict.fromkeys(subtopology.subtopology.read_topics())
        for topic in hash_order(topics, string_hash):
            count = group.partition_count(topic)
            if count is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            # As in Kafka: of more tasks than partitions, as many as there are partitions.
            lines.append((topic, tuple(partitions[:count])))
    return tuple(lines)
