"""DeleteGroups: Empty groups go, with all their offsets."""

from __future__ import annotations

from functools import partial

from mockbroker.handlers.base import Gathering, Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


@api(ApiKey.DELETE_GROUPS, versions=(0, 2))
def delete_groups(
    ctx: RequestContext, request: DeleteGroupsRequest
) -> Parked[DeleteGroupsResponse]:
    """A group named twice is deleted, and answered, once."""
    results = [DeletableGroupResult(group_id=each) for each in dict.fromkeys(request.groups_names)]
    gathering = Gathering(len(results), lambda: DeleteGroupsResponse(results=results))

    def done(result: DeletableGroupResult, error: ErrorCode) -> None:
        result.error_code = error
        gathering.part_done()

    for result in results:
        shard = ctx.broker.groups.shard_of(result.group_id)
        if isinstance(shard, ErrorCode):
            done(result, shard)
        else:
            shard.when_replicated(partial(done, result), shard.delete_group(result.group_id))
    return gathering.reply
