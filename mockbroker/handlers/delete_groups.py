"""DeleteGroups: Empty groups go, with all their offsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mockbroker.core.groups.shard import GroupShard
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
    """A group named twice is deleted, and answered, once.

    Groups of one shard are deleted together, and not before all that was written there is
    replicated: Kafka first asks whether they are share groups, which is a write of its own
    (GroupCoordinatorService.deleteGroups).
    """
    results = [DeletableGroupResult(group_id=each) for each in dict.fromkeys(request.groups_names)]
    by_shard: dict[GroupShard, list[DeletableGroupResult]] = {}
    for result in results:
        shard = ctx.broker.groups.shard_of(result.group_id)
        if isinstance(shard, ErrorCode):
            result.error_code = shard
        else:
            by_shard.setdefault(shard, []).append(result)
    gathering = Gathering(len(by_shard), lambda: DeleteGroupsResponse(results=results))
    for shard, here in by_shard.items():
        shard.when_replicated(partial(_delete, shard, here, gathering.part_done))
    return gathering.reply


def _delete(
    shard: GroupShard,
    results: list[DeletableGroupResult],
    done: Callable[[], None],
    error: ErrorCode,
) -> None:
    verdicts = [error or shard.delete_group(result.group_id) for result in results]

    def tell(failure: ErrorCode) -> None:
        for result, verdict in zip(results, verdicts, strict=True):
            result.error_code = failure or verdict
        done()

    shard.when_replicated(tell, error)
