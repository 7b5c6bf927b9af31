"""Heartbeat: I am alive; is my generation still the current one?"""

from __future__ import annotations

from mockbroker.handlers.base import Parked, RequestContext, api, deferred
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

# Answers to Kafka, not failures: they wait until what was written before is replicated.
ANSWERS = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


@api(ApiKey.HEARTBEAT, versions=(0, 4))
def heartbeat(
    ctx: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Parked[HeartbeatResponse]:
    """While the coordinator loads, members are told that all is well."""
    group_id = request.group_id
    if not group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        loading = shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if loading else shard)
    ctx.cluster.presence.heard(group_id, request.member_id, ctx.connection)
    error = shard.heartbeat(
        group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    if error not in ANSWERS:
        return HeartbeatResponse(error_code=error)
    return deferred(shard, lambda failure: HeartbeatResponse(error_code=failure or error))
