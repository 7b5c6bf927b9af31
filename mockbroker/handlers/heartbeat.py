"""Heartbeat (12): extend a member's session, if its generation is the current one."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import named, on_group, required
from mockbroker.handlers.base import Parked, RequestContext, api, deferred
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

# Kafka answers these once all earlier records of the group are replicated.
ANSWERS = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


@api(
    ApiKey.HEARTBEAT,
    versions=(0, 4),
    authorize=required(named(on_group(AclOperation.READ), "group_id")),
)
def heartbeat(
    ctx: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Parked[HeartbeatResponse]:
    """The response has no error while the coordinator is loading."""
    group_id = request.group_id
    if not group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        loading = shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if loading else shard)
    ctx.cluster.member_connections.record(group_id, request.member_id, ctx.connection)
    error = shard.heartbeat(
        group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    if error not in ANSWERS:
        return HeartbeatResponse(error_code=error)
    return deferred(shard, lambda failure: HeartbeatResponse(error_code=failure or error))
