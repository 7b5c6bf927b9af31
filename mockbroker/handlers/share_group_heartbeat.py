"""ShareGroupHeartbeat (76): join, stay in and leave a share group (KIP-932)."""

from __future__ import annotations

from mockbroker.core.groups.events import ConsumerResult
from mockbroker.core.groups.modern.events import JOIN_EPOCH, LEAVE_EPOCH
from mockbroker.core.groups.share.events import ShareHeartbeat, ShareLeave
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.share_groups import is_member_id_valid, share_groups_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

NONE = ErrorCode.NONE


@api(
    ApiKey.SHARE_GROUP_HEARTBEAT,
    versions=(1, 1),
    authorize=by_handler(
        requires(on_group(AclOperation.READ), about="", otherwise="`GROUP_AUTHORIZATION_FAILED`"),
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each one named",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for all",
        ),
    ),
)
def share_group_heartbeat(
    ctx: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Parked[ShareGroupHeartbeatResponse]:
    """The checks are in the order of KafkaApis and GroupCoordinatorService.shareGroupHeartbeat."""
    error = _refusal(ctx, request)
    if error is not NONE:
        return ShareGroupHeartbeatResponse(error_code=error)
    reason = _why_invalid(request)
    if reason is not None:
        error = ErrorCode.INVALID_REQUEST
        return ShareGroupHeartbeatResponse(error_code=error, error_message=reason)
    group_id, member_id = request.group_id, request.member_id
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return ShareGroupHeartbeatResponse(error_code=shard, error_message=shard.message)
    ctx.cluster.member_connections.record(group_id, member_id, ctx.connection)
    parked: Parked[ShareGroupHeartbeatResponse] = Parked()

    def done(result: ConsumerResult) -> None:
        parked.complete(_response(result))

    if request.member_epoch == LEAVE_EPOCH:
        shard.shares.member_leave(group_id, ShareLeave(callback=done, member_id=member_id))
        return parked
    names = request.subscribed_topic_names
    heartbeat = ShareHeartbeat(
        callback=done,
        member_id=member_id,
        epoch=request.member_epoch,
        rack_id=request.rack_id,
        topic_names=None if names is None else frozenset(names),
        client_id=ctx.client_id,
        client_host=f"/{ctx.connection.client_host}",
    )
    shard.shares.member_heartbeat(group_id, heartbeat)
    return parked


def _refusal(ctx: RequestContext, request: ShareGroupHeartbeatRequest) -> ErrorCode:
    """An error without a message; NONE for a request that the coordinator may check."""
    if not share_groups_enabled(ctx):
        return ErrorCode.UNSUPPORTED_VERSION
    auth = AuthHelper(ctx)
    if not auth.group(AclOperation.READ, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not is_member_id_valid(request.member_id):
        return ErrorCode.INVALID_REQUEST
    if all(
        auth.topic(AclOperation.DESCRIBE, name) for name in request.subscribed_topic_names or ()
    ):
        return NONE
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _why_invalid(request: ShareGroupHeartbeatRequest) -> str | None:
    """The fault of a request, independent of its group; None for a valid one."""
    if not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            return "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    return None


def _response(result: ConsumerResult) -> ShareGroupHeartbeatResponse:
    assignment = result.assignment
    return ShareGroupHeartbeatResponse(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=None
        if assignment is None
        else Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in assignment.items()
            ]
        ),
    )
