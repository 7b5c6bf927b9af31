"""LeaveGroup (13): members leave at once, or an administrator removes them."""

from __future__ import annotations

from mockbroker.core.groups.events import Leave, Leaver, LeaveResult
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import named, on_group, required
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

BATCHES_SINCE = 3


@api(
    ApiKey.LEAVE_GROUP,
    versions=(0, 5),
    authorize=required(named(on_group(AclOperation.READ), "group_id")),
)
def leave_group(
    ctx: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Parked[LeaveGroupResponse]:
    """Before v3 one member leaves, and its error is that of the response."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return LeaveGroupResponse(error_code=shard)
    batched = ctx.api_version >= BATCHES_SINCE
    if batched:
        leavers = tuple(Leaver(m.member_id, m.group_instance_id, m.reason) for m in request.members)
    else:
        leavers = (Leaver(request.member_id),)
    parked: Parked[LeaveGroupResponse] = Parked()

    def done(result: LeaveResult) -> None:
        parked.complete(_response(result, batched=batched))

    shard.leave(request.group_id, Leave(done, leavers))
    return parked


def _response(result: LeaveResult, *, batched: bool) -> LeaveGroupResponse:
    if result.error is not ErrorCode.NONE:
        return LeaveGroupResponse(error_code=result.error)
    if not batched:
        return LeaveGroupResponse(error_code=result.members[0].error)
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=line.member_id,
                group_instance_id=line.instance_id,
                error_code=line.error,
            )
            for line in result.members
        ]
    )
