"""StreamsGroupHeartbeat (88): join, stay in and leave a streams group (KIP-1071).

The broker creates the internal topics that a heartbeat finds missing, after it has answered. The
next heartbeat finds them, or the error of their creation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.modern.events import LEAVE_EPOCH
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    named,
    on_cluster,
    on_group,
    on_topic,
    requires,
)
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.streams_groups import streams_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    ResponseEndpoint,
    ResponseTaskIds,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TopicPartition,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.groups.streams.results import PartitionLines, StreamsResult
    from mockbroker.core.groups.streams.tasks import TaskLines
    from mockbroker_protocol.messages.streams_group_heartbeat import Topology

Answer = StreamsGroupHeartbeatResponse
READ_GROUP = named(on_group(AclOperation.READ), "group_id")


@api(
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    versions=(0, 0),
    authorize=by_handler(
        READ_GROUP.rule,
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each one in the topology",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for all",
        ),
        requires(
            on_cluster(AclOperation.CREATE),
            on_topic(AclOperation.CREATE),
            about="each internal topic to be created",
            otherwise="no topic is created, and the status has the unauthorized ones",
        ),
    ),
)
def streams_group_heartbeat(
    ctx: RequestContext, request: StreamsGroupHeartbeatRequest
) -> Answer | Parked[Answer]:
    """The request itself is checked before its group is."""
    from mockbroker.handlers.streams_requests import refusal_of

    auth = AuthHelper(ctx)
    if not streams_enabled(ctx.cluster):
        return Answer(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not READ_GROUP.is_met(auth, request):
        return Answer(error_code=READ_GROUP.error)
    if request.topology is not None:
        refused = _topics_refused(auth, request.topology)
        if refused is not None:
            return refused
    error = refusal_of(request)
    if error is not None:
        return Answer(error_code=error.error, error_message=error.message)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return Answer(error_code=shard, error_message=shard.message)
    ctx.cluster.member_connections.record(request.group_id, request.member_id, ctx.connection)
    return _handle(auth, shard, request)


def _topics_refused(auth: AuthHelper, topology: Topology) -> Answer | None:
    """The refusal of a topology because of its topics, before the group sees it."""
    from mockbroker.core.metadata.topic import INTERNAL_TOPICS, why_invalid_name

    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys((*each.source_topics, *each.repartition_sink_topics)))
        names.update((topic.name, None) for topic in each.repartition_source_topics)
        names.update((topic.name, None) for topic in each.state_changelog_topics)
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        return Answer(
            error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY,
            error_message=f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka "
            "Streams topology is prohibited.",
        )
    invalid = [name for name in names if why_invalid_name(name) is not None]
    if invalid:
        return Answer(
            error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY,
            error_message=f"Topic names {','.join(invalid)} are not valid topic names.",
        )
    if not all(auth.topic(AclOperation.DESCRIBE, name) for name in names):
        return Answer(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def _handle(
    auth: AuthHelper, shard: GroupShard, request: StreamsGroupHeartbeatRequest
) -> Parked[Answer]:
    from mockbroker.handlers.streams_internal_topics import InternalTopics
    from mockbroker.handlers.streams_requests import heartbeat_event, leave_event

    parked: Parked[Answer] = Parked()
    topics = InternalTopics(auth, request.group_id)

    def done(result: StreamsResult) -> None:
        if result.limit is not None:
            auth.ctx.cluster.runtime.limits_exceeded[result.limit] += 1
        response = _response(result)
        if not result.missing:
            parked.complete(response)
            return
        creatable = topics.add_details(response, result.missing)
        parked.complete(response)
        topics.create(creatable)

    if request.member_epoch == LEAVE_EPOCH:
        shard.streams.member_leave(request.group_id, leave_event(request, done))
        return parked
    event = heartbeat_event(auth.ctx, request, done)
    if event.topology is not None:
        topics.create_ahead(shard.streams, event.topology)
    shard.streams.member_heartbeat(request.group_id, event)
    return parked


def _response(result: StreamsResult) -> Answer:
    response = Answer(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        status=[Status(code, detail) for code, detail in result.statuses],
        endpoint_information_epoch=result.endpoint_epoch,
    )
    if result.assigned is not None:
        active, standby, warmup = result.assigned
        response.active_tasks = _task_lines(active)
        response.standby_tasks = _task_lines(standby)
        response.warmup_tasks = _task_lines(warmup)
    if result.endpoints is not None:
        response.partitions_by_user_endpoint = [
            EndpointToPartitions(
                user_endpoint=ResponseEndpoint(each.endpoint.host, each.endpoint.port),
                active_partitions=_partition_lines(each.active),
                standby_partitions=_partition_lines(each.standby),
            )
            for each in result.endpoints
        ]
    return response


def _task_lines(tasks: TaskLines) -> list[ResponseTaskIds]:
    return [ResponseTaskIds(subtopology, list(partitions)) for subtopology, partitions in tasks]


def _partition_lines(lines: PartitionLines) -> list[TopicPartition]:
    return [TopicPartition(topic, list(partitions)) for topic, partitions in lines]
