"""A StreamsGroupHeartbeat: its validity, and the event that it is for the group.

Source: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.modern.events import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from mockbroker.core.groups.streams.events import SentTopology, StreamsHeartbeat, StreamsLeave
from mockbroker.core.groups.streams.members import Endpoint
from mockbroker.core.groups.streams.tasks import TaskLines
from mockbroker.core.groups.streams.topology import Subtopology
from mockbroker.handlers.base import RequestContext
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import (
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    Topology,
)

NO_TIMEOUT = -1


def refusal_of(request: StreamsGroupHeartbeatRequest) -> ApiError | None:
    """The error of a request, independent of its group; None for a valid one."""
    reason = _unsupported(request) or _invalid(request)
    if reason is not None:
        return ApiError(ErrorCode.INVALID_REQUEST, reason)
    if request.member_epoch == JOIN_EPOCH and request.topology is not None:
        for subtopology in request.topology.subtopologies:
            for topic in subtopology.state_changelog_topics:
                if topic.partitions:
                    return ApiError(
                        ErrorCode.STREAMS_INVALID_TOPOLOGY,
                        f"Changelog topic {topic.name} must have an undefined partition count, but "
                        f"it is set to {topic.partitions}.",
                    )
    reason = _inconsistent(request)
    return None if reason is None else ApiError(ErrorCode.INVALID_REQUEST, reason)


def _unsupported(request: StreamsGroupHeartbeatRequest) -> str | None:
    """The use of a part of KIP-1071 that Kafka 4.3 lacks."""
    if request.instance_id is not None:
        return "Static membership is not yet supported."
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if request.warmup_tasks:
        return "WarmupTasks are not supported yet."
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _invalid(request: StreamsGroupHeartbeatRequest) -> str | None:
    epoch = request.member_epoch
    if not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    if epoch == JOIN_EPOCH:
        return _invalid_join(request)
    if epoch == STATIC_LEAVE_EPOCH:
        return "InstanceId can't be null."
    if epoch < STATIC_LEAVE_EPOCH:
        return f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
    return None


def _invalid_join(request: StreamsGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        return "RebalanceTimeoutMs must be provided in first request."
    kinds = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for name, tasks in kinds:
        if tasks is None or tasks:
            return f"{name} must be empty when (re-)joining."
    if request.topology is None:
        return "Topology must be non-null when (re-)joining."
    return None


def _inconsistent(request: StreamsGroupHeartbeatRequest) -> str | None:
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is None for each in kinds) and any(each is not None for each in kinds):
        return "If one task-type is non-null, all must be non-null."
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return None


# ------------------------------------------------------------------------------------- the events


def heartbeat_event(
    ctx: RequestContext, request: StreamsGroupHeartbeatRequest, callback: object
) -> StreamsHeartbeat:
    """The event of a member that joins or stays."""
    timeout_ms = request.rebalance_timeout_ms
    endpoint, tags, topology = request.user_endpoint, request.client_tags, request.topology
    return StreamsHeartbeat(
        callback=callback,
        member_id=request.member_id,
        epoch=request.member_epoch,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if timeout_ms == NO_TIMEOUT else timeout_ms,
        topology=None if topology is None else _topology(topology),
        active=_tasks(request.active_tasks),
        standby=_tasks(request.standby_tasks),
        warmup=_tasks(request.warmup_tasks),
        process_id=request.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else tuple((each.key, each.value) for each in tags),
        shutdown=request.shutdown_application,
        endpoint_epoch=request.endpoint_information_epoch,
        client_id=ctx.client_id,
        client_host=f"/{ctx.connection.client_host}",
    )


def leave_event(request: StreamsGroupHeartbeatRequest, callback: object) -> StreamsLeave:
    """The event of a member that leaves."""
    return StreamsLeave(
        callback=callback,
        member_id=request.member_id,
        epoch=request.member_epoch,
        shutdown=request.shutdown_application,
    )


def _tasks(lines: list[ResponseTaskIds] | None) -> TaskLines | None:
    if lines is None:
        return None
    return tuple((line.subtopology_id, tuple(line.partitions)) for line in lines)


def _topology(topology: Topology) -> SentTopology:
    return SentTopology(topology.epoch, tuple(map(Subtopology.of, topology.subtopologies)))
