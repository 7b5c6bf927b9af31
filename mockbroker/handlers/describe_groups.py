"""DescribeGroups: state, protocol and members of classic groups."""

from __future__ import annotations

from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.states import State
from mockbroker.core.security.authorized_operations import GROUP_OPERATIONS
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_SINCE = 6


@api(ApiKey.DESCRIBE_GROUPS, versions=(0, 6))
def describe_groups(ctx: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """A group that is not there is Dead; since v6 that is an error as well (KIP-1043)."""
    described = [_describe(ctx, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for line in described:
            if line.error_code == ErrorCode.NONE:
                line.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _describe(ctx: RequestContext, group_id: str) -> DescribedGroup:
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=shard)
    group = shard.groups.get(group_id)
    if group is not None:
        return _described(group)
    missing = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if ctx.api_version >= NOT_FOUND_SINCE:
        missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        missing.error_message = f"Group {group_id} not found."
    return missing


def _described(group: ClassicGroup) -> DescribedGroup:
    """Protocol and metadata are shown of a Stable group only: before, they are not agreed upon."""
    stable = group.state is State.STABLE
    protocol = group.protocol_name if stable else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.roster.protocol_type or "",
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
            for member in group.roster.members.values()
        ],
    )
