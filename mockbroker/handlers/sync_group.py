"""SyncGroup (14): the leader sends the assignments, each member receives its own."""

from __future__ import annotations

from functools import partial

from mockbroker.core.groups.events import Sync, SyncResult
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_group, requires
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_MANDATORY_SINCE = 5


@api(
    ApiKey.SYNC_GROUP,
    versions=(0, 5),
    authorize=by_handler(
        requires(on_group(AclOperation.READ), about="", otherwise="`GROUP_AUTHORIZATION_FAILED`")
    ),
)
def sync_group(
    ctx: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    """The checks are in the order of KafkaApis and GroupCoordinatorService.syncGroup."""
    if _lacks_protocol(ctx, request):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not AuthHelper(ctx).group(AclOperation.READ, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return SyncGroupResponse(error_code=shard)
    ctx.cluster.member_connections.record(request.group_id, request.member_id, ctx.connection)
    parked: Parked[SyncGroupResponse] = Parked()
    event = Sync(
        callback=partial(_complete, parked),
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={a.member_id: bytes(a.assignment) for a in request.assignments},
    )
    shard.sync(request.group_id, event)
    return parked


def _lacks_protocol(ctx: RequestContext, request: SyncGroupRequest) -> bool:
    nameless = request.protocol_type is None or request.protocol_name is None
    return nameless and ctx.api_version >= PROTOCOL_MANDATORY_SINCE


def _complete(parked: Parked[SyncGroupResponse], result: SyncResult) -> None:
    parked.complete(
        SyncGroupResponse(
            error_code=result.error,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol_name,
            assignment=result.assignment,
        )
    )
