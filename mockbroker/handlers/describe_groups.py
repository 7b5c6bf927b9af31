"""DescribeGroups (15): state, protocol and members of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.states import ClassicGroupState
from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.handlers.authorization import AuthHelper, each_row, on_group
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.rows import Rows
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroup

NOT_FOUND_SINCE = 6


@api(
    ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    authorize=each_row(
        on_group(AclOperation.DESCRIBE), field="groups", name="", refused_first=True
    ),
    rows=Rows("groups", "groups", first=frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED})),
)
def describe_groups(ctx: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """An unknown group is Dead; since v6 it is an error as well (KIP-1043)."""
    described = [_describe(ctx, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        auth = AuthHelper(ctx)
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = auth.operations(ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=described)


def _describe(ctx: RequestContext, group_id: str) -> DescribedGroup:
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=shard)
    group = shard.classic.get(group_id)
    if group is not None:
        return _described(group)
    missing = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
    if ctx.api_version >= NOT_FOUND_SINCE:
        missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        missing.error_message = (
            f"Group {group_id} is not a classic group."
            if group_id in shard.groups
            else f"Group {group_id} not found."
        )
    return missing


def _described(group: ClassicGroup) -> DescribedGroup:
    """Only a Stable group has an agreed protocol, and metadata for it."""
    stable = group.state is ClassicGroupState.STABLE
    protocol = group.protocol_name if stable else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
