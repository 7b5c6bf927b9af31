"""DeleteShareGroupOffsets (92): delete the share state of topics of an Empty group (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_group,
    on_topic,
    requires,
    split,
)
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.share_groups import share_groups_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from mockbroker.core.errors import ApiError
    from mockbroker.core.groups.share.offsets import TopicResult


@api(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    versions=(0, 0),
    authorize=by_handler(
        requires(on_group(AclOperation.DELETE), about="", otherwise="`GROUP_AUTHORIZATION_FAILED`"),
        requires(on_topic(AclOperation.READ)),
    ),
    refusal=Refusal(repeats_code=True),
)
def delete_share_group_offsets(
    ctx: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | Parked[DeleteShareGroupOffsetsResponse]:
    """Topics that the client may not read come first."""
    auth = AuthHelper(ctx)
    if not share_groups_enabled(ctx):
        return _refusal(ErrorCode.UNSUPPORTED_VERSION)
    if not auth.group(AclOperation.DELETE, request.group_id):
        return _refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names, denied = split(
        (topic.topic_name for topic in request.topics),
        lambda name: auth.topic(AclOperation.READ, name),
    )
    if not request.group_id.strip():
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refusal(shard)
    from mockbroker.core.groups.share.offsets import delete_offsets

    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=name, error_code=error, error_message=error.message
        )
        for name in denied
    ]
    parked: Parked[DeleteShareGroupOffsetsResponse] = Parked()

    def done(refusal: ApiError | None, results: list[TopicResult]) -> None:
        if refusal is not None:
            parked.complete(_refusal(refusal.error, refusal.message))
        else:
            rows = [*refused, *map(_row, results)]
            parked.complete(DeleteShareGroupOffsetsResponse(responses=rows))

    delete_offsets(shard, request.group_id, names, done)
    return parked


def _row(result: TopicResult) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=result.name,
        topic_id=result.topic_id,
        error_code=result.error,
        error_message=result.message,
    )


def _refusal(error: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        error_code=error, error_message=error.message if message is None else message
    )
