"""DeleteGroups: Empty groups go, with all their offsets."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.replicated import replicated
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


@api(ApiKey.DELETE_GROUPS, versions=(0, 2))
@replicated
def delete_groups(ctx: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """A group named twice is deleted, and answered, once."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=_delete(ctx, group_id))
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )


def _delete(ctx: RequestContext, group_id: str) -> ErrorCode:
    shard = ctx.broker.groups.shard_of(group_id)
    return shard if isinstance(shard, ErrorCode) else shard.delete_group(group_id)
