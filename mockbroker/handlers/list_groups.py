"""ListGroups (16): the groups that this broker coordinates. A client lists all from all brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_cluster, on_group, requires
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.group import Group


@api(
    ApiKey.LIST_GROUPS,
    versions=(0, 5),
    authorize=by_handler(
        requires(
            on_cluster(AclOperation.DESCRIBE),
            on_group(AclOperation.DESCRIBE),
            otherwise="left out",
        ),
    ),
)
def list_groups(ctx: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Filters (states since v4, types since v5) ignore case; an empty filter lets all through."""
    auth = AuthHelper(ctx)
    all_groups = auth.cluster(AclOperation.DESCRIBE)
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed: list[ListedGroup] = []
    for shard in ctx.broker.groups.shards():
        if isinstance(shard, ErrorCode):
            return ListGroupsResponse(error_code=shard)
        listed += (
            line
            for line in map(_line, shard.by_type())
            if (not states or _filtered_by(line.group_state) in states)
            and (not types or line.group_type in types)
            and (all_groups or auth.group(AclOperation.DESCRIBE, line.group_id))
        )
    return ListGroupsResponse(groups=listed)


def _filtered_by(state: str) -> str:
    """The name of a state in a filter (StreamsGroupState.toLowerCaseString)."""
    return "not_ready" if state == "NotReady" else state.lower()


def _line(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.group_type,
    )
