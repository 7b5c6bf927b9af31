"""AlterShareGroupOffsets (91): set the start offsets of an Empty share group (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import ZERO_UUID
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.share_groups import share_groups_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.share.offsets import PartitionErrors

NONE = ErrorCode.NONE


@api(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    versions=(0, 0),
    authorize=by_handler(
        requires(on_group(AclOperation.READ), about="", otherwise="`GROUP_AUTHORIZATION_FAILED`"),
        requires(on_topic(AclOperation.READ)),
    ),
    refusal=Refusal(repeats_code=True),
)
def alter_share_group_offsets(
    ctx: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Parked[AlterShareGroupOffsetsResponse]:
    """The checks are in the order of KafkaApis; the group itself is checked last."""
    auth = AuthHelper(ctx)
    if not share_groups_enabled(ctx):
        return _refusal(ErrorCode.UNSUPPORTED_VERSION)
    if not auth.group(AclOperation.READ, request.group_id):
        return _refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    builder = _ResponseBuilder(ctx)
    start_offsets: dict[bytes, dict[int, int]] = {}
    for topic in request.topics:
        error = _topic_error(auth, topic.topic_name)
        if error is NONE:
            _add_existing(ctx, topic, start_offsets, builder)
        else:
            for partition in topic.partitions:
                builder.refuse(topic.topic_name, partition.partition_index, error)
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refusal(shard)
    from mockbroker.core.groups.share.offsets import alter_offsets

    parked: Parked[AlterShareGroupOffsetsResponse] = Parked()

    def done(refused: ApiError | None, errors: PartitionErrors) -> None:
        if refused is not None:
            parked.complete(_refusal(refused.error, refused.message))
        else:
            parked.complete(builder.response(errors))

    alter_offsets(shard, request.group_id, start_offsets, done)
    return parked


def _topic_error(auth: AuthHelper, name: str) -> ErrorCode:
    if not auth.topic(AclOperation.READ, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = name in auth.ctx.image.topics
    return NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _add_existing(
    ctx: RequestContext,
    topic: AlterShareGroupOffsetsRequestTopic,
    start_offsets: dict[bytes, dict[int, int]],
    builder: _ResponseBuilder,
) -> None:
    """Add the partitions of a topic that exist; the builder gets the errors of the others."""
    found = ctx.image.topics[topic.topic_name]
    offsets = start_offsets.setdefault(found.topic_id, {})
    for partition in topic.partitions:
        index = partition.partition_index
        exists = index < len(found.partitions)  # Kafka lets negative ones pass
        if exists:
            offsets[index] = partition.start_offset
        error = NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        builder.add(topic.topic_name, index, error)


class _ResponseBuilder:
    """AlterShareGroupOffsetsResponse.Builder: refused topics come first."""

    __slots__ = ("_ctx", "_refused", "_topics")

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._refused: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
        self._topics: dict[str, AlterShareGroupOffsetsResponseTopic] = {}

    def refuse(self, name: str, index: int, error: ErrorCode) -> None:
        """Add a partition of a topic that is refused as a whole."""
        self._add(self._refused, name, index, error)

    def add(self, name: str, index: int, error: ErrorCode) -> None:
        """Add a partition of a topic that exists; NONE may become an error in `response`."""
        self._add(self._topics, name, index, error)

    def _add(
        self,
        lines: dict[str, AlterShareGroupOffsetsResponseTopic],
        name: str,
        index: int,
        error: ErrorCode,
    ) -> None:
        if name not in lines:
            topic = self._ctx.image.topics.get(name)
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            lines[name] = AlterShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
        message = None if error is NONE else error.message
        lines[name].partitions.append(_row(index, error, message))

    def response(self, errors: PartitionErrors) -> AlterShareGroupOffsetsResponse:
        """The response, with the errors of partitions whose state could not be initialized."""
        for topic in self._topics.values():
            of_topic = errors.get(topic.topic_id, {})
            topic.partitions = [
                _row(each.partition_index, *of_topic[each.partition_index])
                if each.error_code == NONE and each.partition_index in of_topic
                else each
                for each in topic.partitions
            ]
        return AlterShareGroupOffsetsResponse(
            responses=[*self._refused.values(), *self._topics.values()]
        )


def _row(
    index: int, error: ErrorCode, message: str | None
) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=index, error_code=error, error_message=message
    )


def _refusal(error: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        error_code=error, error_message=error.message if message is None else message
    )
