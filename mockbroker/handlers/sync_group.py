"""SyncGroup: hand in the assignment (the leader), get one's own part (everybody)."""

from __future__ import annotations

from functools import partial

from mockbroker.core.groups.events import Sync, SyncResult
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_MANDATORY_SINCE = 5


@api(ApiKey.SYNC_GROUP, versions=(0, 5))
def sync_group(
    ctx: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    """The order of the checks is that of KafkaApis and GroupCoordinatorService.syncGroup."""
    if ctx.api_version >= PROTOCOL_MANDATORY_SINCE and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return SyncGroupResponse(error_code=shard)
    ctx.cluster.presence.heard(request.group_id, request.member_id, ctx.connection)
    parked: Parked[SyncGroupResponse] = Parked()
    event = Sync(
        slot=partial(_complete, parked),
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={a.member_id: bytes(a.assignment) for a in request.assignments},
    )
    shard.sync(request.group_id, event)
    return parked


def _complete(parked: Parked[SyncGroupResponse], result: SyncResult) -> None:
    parked.complete(
        SyncGroupResponse(
            error_code=result.error,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol_name,
            assignment=result.assignment,
        )
    )
