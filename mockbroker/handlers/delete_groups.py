"""DeleteGroups (42): Empty groups, with all their offsets or their share state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.groups.deletion import delete_groups as delete
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_group, requires, split
from mockbroker.handlers.base import CombinedReply, Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard


@api(
    ApiKey.DELETE_GROUPS,
    versions=(0, 2),
    authorize=by_handler(requires(on_group(AclOperation.DELETE))),
)
def delete_groups(
    ctx: RequestContext, request: DeleteGroupsRequest
) -> Parked[DeleteGroupsResponse]:
    """A group named twice has one result. Refused groups come last.

    Groups of one shard are deleted together, once all earlier records of the shard are replicated:
    Kafka's coordinator first writes the deletion of share groups
    (GroupCoordinatorService.deleteGroups).
    """
    auth = AuthHelper(ctx)
    granted, denied = split(
        dict.fromkeys(request.groups_names), lambda each: auth.group(AclOperation.DELETE, each)
    )
    results = [DeletableGroupResult(group_id=each) for each in granted]
    by_shard: dict[GroupShard, list[DeletableGroupResult]] = {}
    for result in results:
        shard = ctx.broker.groups.shard_of(result.group_id)
        if isinstance(shard, ErrorCode):
            result.error_code = shard
        else:
            by_shard.setdefault(shard, []).append(result)
    error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = [DeletableGroupResult(group_id=each, error_code=error) for each in denied]
    combined = CombinedReply(len(by_shard), lambda: DeleteGroupsResponse(results=results + refused))
    for shard, here in by_shard.items():
        done = partial(_finish, here, combined.part_done)
        delete(shard, [result.group_id for result in here], done)
    return combined.reply


def _finish(
    results: list[DeletableGroupResult], done: Callable[[], None], errors: Mapping[str, ErrorCode]
) -> None:
    for result in results:
        result.error_code = errors[result.group_id]
    done()
