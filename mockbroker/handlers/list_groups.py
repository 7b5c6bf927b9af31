"""ListGroups: the groups that this broker coordinates. To see all, a client asks every broker."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker.core.groups.base import CONSUMER_PROTOCOL_TYPE
from mockbroker.core.groups.shard import GroupShard
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

CLASSIC = "classic"
CONSUMER = "consumer"


@api(ApiKey.LIST_GROUPS, versions=(0, 5))
def list_groups(ctx: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Filters (states since v4, types since v5) ignore case; an empty one lets all through."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed: list[ListedGroup] = []
    for shard in ctx.broker.groups.shards():
        if isinstance(shard, ErrorCode):
            return ListGroupsResponse(error_code=shard)
        listed += (
            line
            for line in _all(shard)
            if (not states or line.group_state.lower() in states)
            and (not types or line.group_type in types)
        )
    return ListGroupsResponse(groups=listed)


def _all(shard: GroupShard) -> Iterator[ListedGroup]:
    for group in shard.groups.values():
        yield ListedGroup(
            group_id=group.group_id,
            protocol_type=group.roster.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
    for consumer in shard.consumers.groups.values():
        yield ListedGroup(
            group_id=consumer.group_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=consumer.state.value,
            group_type=CONSUMER,
        )
