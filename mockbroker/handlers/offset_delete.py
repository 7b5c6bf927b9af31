"""OffsetDelete (47): delete offsets of topics to which no member is subscribed (KIP-496)."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    named,
    on_group,
    on_topic,
    required,
    requires,
)
from mockbroker.handlers.base import Parked, RequestContext, api, deferred
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@api(
    ApiKey.OFFSET_DELETE,
    versions=(0, 0),
    authorize=required(
        named(on_group(AclOperation.DELETE), "group_id"),
        rules=(requires(on_topic(AclOperation.READ)),),
    ),
)
def offset_delete(
    ctx: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Parked[OffsetDeleteResponse]:
    """An error of the group refuses all; a partition that does not exist has its own error."""
    auth = AuthHelper(ctx)
    denied: dict[tuple[str, int], ErrorCode] = {}
    unknown: dict[tuple[str, int], ErrorCode] = {}
    known: list[tuple[str, int]] = []
    for topic in request.topics:
        for line in topic.partitions:
            key = (topic.name, line.partition_index)
            if not auth.topic(AclOperation.READ, topic.name):
                denied[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif ctx.image.partition(*key) is None:
                unknown[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known.append(key)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return OffsetDeleteResponse(error_code=shard)
    outcome = shard.delete_offsets(request.group_id, known)
    if isinstance(outcome, ErrorCode):
        return OffsetDeleteResponse(error_code=outcome)
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (name, index), error in (denied | unknown | outcome).items():
        if name not in topics:
            topics[name] = OffsetDeleteResponseTopic(name=name)
        topics[name].partitions.append(
            OffsetDeleteResponsePartition(partition_index=index, error_code=error)
        )

    def response(error: ErrorCode) -> OffsetDeleteResponse:
        lines = [] if error else list(topics.values())
        return OffsetDeleteResponse(error_code=error, topics=lines)

    return deferred(shard, response)
