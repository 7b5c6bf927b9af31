"""ConsumerGroupHeartbeat: join, stay in and leave a group of the new protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    ConsumerLeave,
    ConsumerResult,
)
from mockbroker.core.groups.consumer.states import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from mockbroker.core.ids import uuid_text
from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization.access import Access
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


@api(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1))
def consumer_group_heartbeat(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Parked[ConsumerGroupHeartbeatResponse]:
    """The request by itself is checked first, then the group is asked."""
    reason = _why_invalid(request, ctx.api_version)
    if reason is not None:
        return _refusal(ErrorCode.INVALID_REQUEST, reason)
    assignors = ctx.cluster.config("group.consumer.assignors")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        reason = f"There is no assignor {assignor!r}; there are {', '.join(assignors)}."
        return _refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refusal(shard, shard.sentence)
    ctx.cluster.presence.heard(request.group_id, request.member_id, ctx.connection)
    parked: Parked[ConsumerGroupHeartbeatResponse] = Parked()

    def done(result: ConsumerResult) -> None:
        parked.complete(_response(result))

    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        shard.consumers.leave(
            request.group_id,
            ConsumerLeave(
                slot=done,
                member_id=request.member_id,
                epoch=request.member_epoch,
                instance_id=request.instance_id,
            ),
        )
    else:
        event = _event(ctx, request, done)
        shard.consumers.heartbeat(request.group_id, event, _may_see(ctx))
    return parked


def _may_see(ctx: RequestContext) -> Callable[[str], bool] | None:
    """Tells of a topic whether the member may describe it; None where it may any."""
    if ctx.cluster.authorizer is None:
        return None
    return partial(Access(ctx).topic, Operation.DESCRIBE)


def _why_invalid(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """What is wrong with the request whatever the group, or None."""
    epoch = request.member_epoch
    must_name_member = version >= MEMBER_ID_MANDATORY_SINCE or epoch > 0 or epoch == LEAVE_EPOCH
    if must_name_member and not request.member_id.strip():
        return "The member id is empty."
    if not request.group_id.strip():
        return "The group id is empty."
    if request.instance_id is not None and not request.instance_id.strip():
        return "The instance id is empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "The rack id is empty."
    if epoch == JOIN_EPOCH:
        return _why_invalid_join(request)
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return "Only a static member can leave for a while."
    if epoch < STATIC_LEAVE_EPOCH:
        return f"There is no member epoch {epoch}."
    return None


def _why_invalid_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        return "A member that joins has to say its rebalance timeout."
    if request.topic_partitions is None or request.topic_partitions:
        return "A member that joins owns nothing, and has to say so."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "A member that joins has to say what it subscribes to."
    return None


def _event(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest, slot: object
) -> ConsumerHeartbeat:
    names = request.subscribed_topic_names
    owned = request.topic_partitions
    timeout_ms = request.rebalance_timeout_ms
    return ConsumerHeartbeat(
        slot=slot,
        member_id=request.member_id or uuid_text(ctx.cluster.ids.uuid()),
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
