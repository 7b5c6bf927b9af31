"""StreamsGroupDescribe (89): epochs, topology, tasks and members of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.group_descriptions import GROUP_ROWS, Description, described, refused
from mockbroker.handlers.streams_groups import streams_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.groups.streams.group import StreamsGroup
    from mockbroker.core.groups.streams.members import StreamsMember
    from mockbroker.core.groups.streams.topology import InternalTopic
    from mockbroker.core.groups.streams.topology import Subtopology as CoreSubtopology

UNSEEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


@api(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    versions=(0, 0),
    authorize=by_handler(
        requires(on_group(AclOperation.DESCRIBE)),
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each in the topology",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for the group",
        ),
    ),
    rows=GROUP_ROWS,
)
def streams_group_describe(
    ctx: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    """Describe streams groups; unauthorized groups come first."""
    if not streams_enabled(ctx.cluster):
        rows = refused(request.group_ids, _DESCRIPTION, ErrorCode.UNSUPPORTED_VERSION)
        return StreamsGroupDescribeResponse(groups=rows)
    return StreamsGroupDescribeResponse(groups=described(ctx, request, _DESCRIPTION))


def _describe(shard: GroupShard, group: StreamsGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, shard.partition.log_end_offset),
        members=[_member(group, each) for each in group.members.values()],
    )


def _topics(described: DescribedGroup) -> Iterator[str]:
    topology = described.topology
    for each in (topology.subtopologies if topology is not None else None) or ():
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in each.repartition_source_topics)
        yield from (topic.name for topic in each.state_changelog_topics)


def _topology(group: StreamsGroup, log_end_offset: int) -> Topology | None:
    """The configured topology if it is ready, else the one that the members have sent."""
    if group.topology is None:
        return None
    configured = group.described_topology(log_end_offset)
    if configured is not None and configured.subtopologies is not None:
        lines = [
            _subtopology(each.subtopology, each.repartition_sources, each.changelogs)
            for each in configured.subtopologies.values()
        ]
        return Topology(epoch=configured.epoch, subtopologies=lines)
    sent = group.topology.by_id
    lines = [
        _subtopology(sent[each], sent[each].repartition_sources, sent[each].changelogs)
        for each in sorted(sent)
    ]
    return Topology(epoch=group.topology.epoch, subtopologies=lines)


def _subtopology(
    subtopology: CoreSubtopology,
    repartition_sources: Iterable[InternalTopic],
    changelogs: Iterable[InternalTopic],
) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sinks),
        state_changelog_topics=_topic_lines(changelogs),
        repartition_source_topics=_topic_lines(repartition_sources),
    )


def _topic_lines(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    lines = (
        TopicInfo(
            each.name,
            each.partitions,
            each.replication_factor,
            [KeyValue(name, value) for name, value in each.configs],
        )
        for each in topics
    )
    return sorted(lines, key=lambda line: line.name)


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    endpoint = member.endpoint
    target = group.targets.get(member.member_id)
    owned = member.assigned
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=[KeyValue(name, value) for name, value in member.client_tags.items()],
        assignment=Assignment(_tasks(owned.active), _tasks(owned.standby), _tasks(owned.warmup)),
        target_assignment=Assignment()
        if target is None
        else Assignment(_tasks(target.active), _tasks(target.standby), _tasks(target.warmup)),
    )


def _tasks(tasks: Mapping[str, Iterable[int]]) -> list[TaskIds]:
    return [TaskIds(each, sorted(tasks[each])) for each in sorted(tasks)]


_DESCRIPTION = Description(
    DescribedGroup, lambda shard: shard.streams, _describe, _topics, UNSEEN_TOPICS
)
