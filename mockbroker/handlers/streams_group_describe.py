"""StreamsGroupDescribe (89): epochs, topology, tasks and members of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import RequestContext, api
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
    from mockbroker.core.groups.streams.group import StreamsGroup
    from mockbroker.core.groups.streams.members import StreamsMember
    from mockbroker.core.groups.streams.topology import InternalTopic
    from mockbroker.core.groups.streams.topology import Subtopology as CoreSubtopology

UNSEEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


@api(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    versions=(0, 0),
    authorize=by_handler(
        requires(on_group(Operation.DESCRIBE)),
        requires(
            on_topic(Operation.DESCRIBE),
            about="each in the topology",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for the group",
        ),
    ),
)
def streams_group_describe(
    ctx: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    """Describe streams groups; unauthorized groups come first."""
    if not streams_enabled(ctx.cluster):
        unsupported = ErrorCode.UNSUPPORTED_VERSION
        return StreamsGroupDescribeResponse(
            groups=[DescribedGroup(unsupported, group_id=each) for each in request.group_ids]
        )
    auth = AuthHelper(ctx)
    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    described = [
        DescribedGroup(denied, group_id=each)
        for each in request.group_ids
        if not auth.group(Operation.DESCRIBE, each)
    ]
    allowed = [each for each in request.group_ids if auth.group(Operation.DESCRIBE, each)]
    described += (_describe(ctx, auth, each) for each in allowed)
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = auth.operations(ResourceType.GROUP, group.group_id)
    return StreamsGroupDescribeResponse(groups=described)


def _describe(ctx: RequestContext, auth: AuthHelper, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(ErrorCode.INVALID_GROUP_ID, group_id=group_id)
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(shard, group_id=group_id)
    if group_id not in shard.groups or shard.groups[group_id].group_type != "streams":
        reason = "is not a streams group" if group_id in shard.groups else "not found"
        return DescribedGroup(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.", group_id=group_id
        )
    group = shard.streams.get(group_id)
    assert group is not None
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, shard.partition.log_end_offset),
        members=[_member(group, each) for each in group.members.values()],
    )
    if all(auth.topic(Operation.DESCRIBE, name) for name in _topics(described)):
        return described
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNSEEN_TOPICS, group_id=group_id)


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
