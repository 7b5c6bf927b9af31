"""OffsetCommit (8): commit the offsets of a group."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.groups.offsets import NO_TIMESTAMP, OffsetAndMetadata
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import each_row, named, on_group, on_topic
from mockbroker.handlers.base import Parked, RequestContext, api, deferred
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mockbroker_protocol.runtime import as_int64

GROUP_NOT_FOUND_SINCE = 9
TOPIC_IDS_SINCE = 10
KEEP_FOR_RETENTION = -1  # retention_time_ms: no expiry of its own

NONE = ErrorCode.NONE


class ExistingPartition(NamedTuple):
    """A partition of the request that exists."""

    entry: int  # the index of its topic in the request
    topic: str
    topic_id: bytes
    partition: OffsetCommitRequestPartition


@api(
    ApiKey.OFFSET_COMMIT,
    versions=(2, 10),
    authorize=each_row(
        on_topic(AclOperation.READ),
        ids_since=TOPIC_IDS_SINCE,
        first=(named(on_group(AclOperation.READ), "group_id"),),
        refused_first=True,
    ),
)
def offset_commit(
    ctx: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    """A missing partition has an error of its own; an error of the group is for all others."""
    builder = _ResponseBuilder()
    existing: list[ExistingPartition] = []
    for entry, topic in enumerate(request.topics):
        _add_existing(ctx, entry, topic, existing, builder)
    return _commit(ctx, request, existing, builder) if existing else builder.response


def _add_existing(
    ctx: RequestContext,
    entry: int,
    topic: OffsetCommitRequestTopic,
    existing: list[ExistingPartition],
    builder: _ResponseBuilder,
) -> None:
    """Add the partitions of a topic that exist; the builder gets the errors of the others."""
    image = ctx.image
    if ctx.api_version >= TOPIC_IDS_SINCE:
        found = image.topics_by_id.get(topic.topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        found = image.topics.get(topic.name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    count = len(found.partitions) if found else 0
    for partition in topic.partitions:
        index = partition.partition_index
        if found is not None and 0 <= index < count:
            existing.append(ExistingPartition(entry, found.name, found.topic_id, partition))
        else:
            error = missing if found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            name = topic.name if found is None else found.name
            builder.add_missing(name, topic.topic_id, index, error)


def _commit(
    ctx: RequestContext,
    request: OffsetCommitRequest,
    existing: list[ExistingPartition],
    builder: _ResponseBuilder,
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    group_id = request.group_id
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return builder.add_all(existing, shard)
    error = shard.check_commit(
        group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        unknown_group=(
            ErrorCode.GROUP_ID_NOT_FOUND
            if ctx.api_version >= GROUP_NOT_FOUND_SINCE
            else ErrorCode.ILLEGAL_GENERATION
        ),
        version=ctx.api_version,
    )
    if error is not NONE:
        return builder.add_all(existing, error)
    metadata_max = ctx.broker.groups.offset_metadata_max
    commits: list[tuple[str, int, OffsetAndMetadata]] = []
    errors: list[ErrorCode] = []
    now_ms = shard.now_ms(group_id)
    group = shard.groups[group_id]
    for _, topic, topic_id, partition in existing:
        metadata = partition.committed_metadata
        if metadata is not None and len(metadata) > metadata_max:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            error = group.check_partition(
                request.member_id,
                request.generation_id_or_member_epoch,
                topic,
                topic_id,
                partition.partition_index,
            )
            if error is not NONE:
                return builder.add_all(existing, error)  # one partition refuses all
        errors.append(error)
        if error is NONE:
            value = _value(partition, topic_id, now_ms, request.retention_time_ms)
            commits.append((topic, partition.partition_index, value))

    def response(failure: ErrorCode) -> OffsetCommitResponse:
        for partition, error in zip(existing, errors, strict=True):
            builder.add(partition, failure or error)
        return builder.response

    return deferred(shard, response, shard.commit(group_id, commits, ctx.seq))


def _value(
    partition: OffsetCommitRequestPartition, topic_id: bytes, now_ms: int, retention_ms: int
) -> OffsetAndMetadata:
    expiry = NO_TIMESTAMP
    if retention_ms != KEEP_FOR_RETENTION:
        expiry = as_int64(now_ms + retention_ms)
    return OffsetAndMetadata(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        expiry,
        topic_id,
    )


class _ResponseBuilder:
    """OffsetCommitResponse.Builder.

    Topics are those of the request. Once a partition is missing, entries of the same topic are
    merged.
    """

    __slots__ = ("_merging", "_topics", "response")

    def __init__(self) -> None:
        self.response = OffsetCommitResponse()
        self._topics: dict[str | bytes | int, OffsetCommitResponseTopic] = {}
        self._merging = False

    def add_missing(self, name: str, topic_id: bytes, index: int, error: ErrorCode) -> None:
        """Add the error of a partition that does not exist. All of these come before any `add`."""
        self._merging = True
        self._put(_identity(name, topic_id), name, topic_id, index, error)

    def add(self, existing: ExistingPartition, error: ErrorCode) -> None:
        """Add the error, which may be NONE, of a partition that exists."""
        entry, name, topic_id, partition = existing
        key = _identity(name, topic_id) if self._merging else entry
        self._put(key, name, topic_id, partition.partition_index, error)

    def add_all(self, existing: list[ExistingPartition], error: ErrorCode) -> OffsetCommitResponse:
        """The response with one error for all of them."""
        for partition in existing:
            self.add(partition, error)
        return self.response

    def _put(
        self, key: str | bytes | int, name: str, topic_id: bytes, index: int, error: ErrorCode
    ) -> None:
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = OffsetCommitResponseTopic(name=name, topic_id=topic_id)
            self.response.topics.append(topic)
        topic.partitions.append(
            OffsetCommitResponsePartition(partition_index=index, error_code=error)
        )


def _identity(name: str, topic_id: bytes) -> str | bytes:
    """The name of a topic, or its id if it has none."""
    return name or topic_id
