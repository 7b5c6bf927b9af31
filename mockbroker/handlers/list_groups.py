"""ListGroups: the groups that this broker coordinates. To see all, a client asks every broker."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

CLASSIC = "classic"


@api(ApiKey.LIST_GROUPS, versions=(0, 5))
def list_groups(ctx: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Filters (states since v4, types since v5) ignore case; an empty one lets all through."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed: list[ListedGroup] = []
    for shard in ctx.broker.groups.shards():
        if isinstance(shard, ErrorCode):
            return ListGroupsResponse(error_code=shard)
        listed += [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.roster.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in shard.groups.values()
            if (not states or group.state.value.lower() in states)
            and (not types or CLASSIC in types)
        ]
    return ListGroupsResponse(groups=listed)
