"""JoinGroup (11): join the next generation of a classic group, and wait for it."""

from __future__ import annotations

from functools import partial

from mockbroker.core.groups.events import Join, JoinResult
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import named, on_group, required
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import ErrorDetails, Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

# Since v4 a new dynamic member gets its id with MEMBER_ID_REQUIRED (KIP-394). Since v9 the response
# can have a returning static leader skip the assignment (KIP-814).
MEMBER_ID_REQUIRED_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIP_ASSIGNMENT_SINCE = 9


def _finish_refusal(
    response: JoinGroupResponse,
    request: JoinGroupRequest,  # noqa: ARG001
    details: ErrorDetails,
) -> None:
    if details.version >= NULL_PROTOCOL_SINCE:
        response.protocol_name = None


@api(
    ApiKey.JOIN_GROUP,
    versions=(0, 9),
    authorize=required(named(on_group(AclOperation.READ), "group_id")),
    refusal=Refusal(finish=_finish_refusal),
)
def join_group(
    ctx: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    """The checks are in the order of GroupCoordinatorService.joinGroup."""
    version = ctx.api_version
    groups = ctx.broker.groups
    if not request.group_id:
        return _refusal(version, ErrorCode.INVALID_GROUP_ID, request.member_id)
    timeout_ms = request.session_timeout_ms
    if not groups.session_timeout_min_ms <= timeout_ms <= groups.session_timeout_max_ms:
        return _refusal(version, ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
    shard = groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refusal(version, shard, "")
    parked: Parked[JoinGroupResponse] = Parked()
    shard.join(request.group_id, _event(ctx, request, partial(_complete, parked, version)))
    return parked


def _event(ctx: RequestContext, request: JoinGroupRequest, callback: object) -> Join:
    version = ctx.api_version
    instance_id = request.group_instance_id
    new_member_id = ""
    if not request.member_id:
        prefix = ctx.client_id if instance_id is None else instance_id
        new_member_id = f"{prefix}-{ctx.cluster.runtime.ids.member_suffix()}"
    # v0 has no rebalance timeout: the session timeout stands in for it.
    rebalance_ms = request.rebalance_timeout_ms if version else request.session_timeout_ms
    return Join(
        callback=callback,
        member_id=request.member_id,
        new_member_id=new_member_id,
        instance_id=instance_id,
        client_id=ctx.client_id,
        client_host=f"/{ctx.connection.client_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((p.name, bytes(p.metadata)) for p in request.protocols),
        member_id_required=version >= MEMBER_ID_REQUIRED_SINCE,
        skip_assignment=version >= SKIP_ASSIGNMENT_SINCE,
        reason=request.reason or "not provided",
    )


def _complete(parked: Parked[JoinGroupResponse], version: int, result: JoinResult) -> None:
    parked.complete(
        JoinGroupResponse(
            error_code=result.error,
            generation_id=result.generation,
            protocol_type=result.protocol_type,
            protocol_name=_protocol_name(version, result.protocol_name),
            leader=result.leader,
            skip_assignment=result.skip_assignment,
            member_id=result.member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    metadata=member.metadata,
                )
                for member in result.members
            ],
        )
    )


def _refusal(version: int, error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error, protocol_name=_protocol_name(version, None), member_id=member_id
    )


def _protocol_name(version: int, name: str | None) -> str | None:
    """Without a protocol the name is "" before v7, null since."""
    if version < NULL_PROTOCOL_SINCE:
        return name or ""
    return name or None
