"""ConsumerGroupHeartbeat (68): join, stay in and leave a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mockbroker.core.groups.consumer.events import ConsumerHeartbeat, ConsumerLeave
from mockbroker.core.groups.events import ConsumerResult
from mockbroker.core.groups.modern.events import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from mockbroker.core.ids import uuid_text
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    Handle,
    checked,
    named,
    on_group,
    on_topic,
    requires,
    unmet,
)
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

MEMBER_ID_MANDATORY_SINCE = 1  # KIP-1082
NO_TIMEOUT = -1


READ_GROUP = named(on_group(AclOperation.READ), "group_id")


def _authorize(auth: AuthHelper, request: ConsumerGroupHeartbeatRequest, handle: Handle) -> object:
    """The group itself checks the topics that a regular expression matches."""
    refusal = unmet(auth, request, (READ_GROUP,))
    if refusal is not None:
        return refusal
    if all(
        auth.topic(AclOperation.DESCRIBE, name) for name in request.subscribed_topic_names or ()
    ):
        return handle(request)
    return auth.ctx.refusal(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@api(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    versions=(0, 1),
    authorize=checked(
        _authorize,
        READ_GROUP.rule,
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each one named",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for all",
        ),
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each one that a regular expression matches",
            otherwise="not part of the subscription",
        ),
    ),
)
def consumer_group_heartbeat(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Parked[ConsumerGroupHeartbeatResponse]:
    """The request itself is checked before its group is."""
    reason = _why_invalid(request, ctx.api_version)
    if reason is not None:
        return _refusal(ErrorCode.INVALID_REQUEST, reason)
    assignors = ctx.cluster.config("group.consumer.assignors")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        known = ", ".join(assignors)
        reason = f"ServerAssignor {assignor} is not supported. Supported assignors: {known}."
        return _refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refusal(shard, shard.message)
    ctx.cluster.member_connections.record(request.group_id, request.member_id, ctx.connection)
    parked: Parked[ConsumerGroupHeartbeatResponse] = Parked()

    def done(result: ConsumerResult) -> None:
        parked.complete(_response(result))

    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        shard.consumers.member_leave(
            request.group_id,
            ConsumerLeave(
                callback=done,
                member_id=request.member_id,
                epoch=request.member_epoch,
                instance_id=request.instance_id,
            ),
        )
    else:
        event = _event(ctx, request, done)
        shard.consumers.consumer_heartbeat(request.group_id, event, _may_describe(ctx))
    return parked


def _may_describe(ctx: RequestContext) -> Callable[[str], bool] | None:
    """Whether the member is authorized to describe a topic; None without an authorizer."""
    if ctx.cluster.authorizer is None:
        return None
    return partial(AuthHelper(ctx).topic, AclOperation.DESCRIBE)


def _why_invalid(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """The fault of a request, independent of its group; None for a valid one."""
    epoch = request.member_epoch
    must_name_member = version >= MEMBER_ID_MANDATORY_SINCE or epoch > 0 or epoch == LEAVE_EPOCH
    if must_name_member and not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.instance_id is not None and not request.instance_id.strip():
        return "InstanceId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    if epoch == JOIN_EPOCH:
        return _why_invalid_join(request)
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    if epoch < STATIC_LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    return None


def _why_invalid_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )
    return None


def _event(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest, callback: object
) -> ConsumerHeartbeat:
    names = request.subscribed_topic_names
    owned = request.topic_partitions
    timeout_ms = request.rebalance_timeout_ms
    return ConsumerHeartbeat(
        callback=callback,
        member_id=request.member_id or uuid_text(ctx.cluster.runtime.ids.uuid()),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if timeout_ms == NO_TIMEOUT else timeout_ms,
        topic_names=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        reported=None
        if owned is None
        else {bytes(line.topic_id): tuple(line.partitions) for line in owned},
        client_id=ctx.client_id,
        client_host=f"/{ctx.connection.client_host}",
    )


def _response(result: ConsumerResult) -> ConsumerGroupHeartbeatResponse:
    assignment = result.assignment
    return ConsumerGroupHeartbeatResponse(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=None
        if assignment is None
        else Assignment(
            topic_partitions=[
                ResponseTopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in assignment.items()
            ]
        ),
    )


def _refusal(error: ErrorCode, reason: str) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=reason)
