"""OffsetCommit: keep how far a group has read."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.groups.offsets import NO_TIMESTAMP, OffsetAndMetadata
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

GROUP_NOT_FOUND_SINCE = 9
TOPIC_IDS_SINCE = 10
KEEP_FOR_RETENTION = -1  # retention_time_ms: no expiry of its own

NONE = ErrorCode.NONE


class Line(NamedTuple):
    """One partition of the request whose topic and partition exist."""

    entry: int  # the place of its topic in the request
    topic: str
    topic_id: bytes
    partition: OffsetCommitRequestPartition


@api(ApiKey.OFFSET_COMMIT, versions=(2, 10))
def offset_commit(
    ctx: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    """What does not exist is refused by itself; what is wrong with the group, everywhere."""
    answer = _Answer()
    lines: list[Line] = []
    for entry, topic in enumerate(request.topics):
        _sort_out(ctx, entry, topic, lines, answer)
    return _commit(ctx, request, lines, answer) if lines else answer.response


def _sort_out(
    ctx: RequestContext,
    entry: int,
    topic: OffsetCommitRequestTopic,
    lines: list[Line],
    answer: _Answer,
) -> None:
    """Keep the partitions that exist, answer for the others."""
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
            lines.append(Line(entry, found.name, found.topic_id, partition))
        else:
            error = missing if found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            name = topic.name if found is None else found.name
            answer.refuse(name, topic.topic_id, index, error)


def _commit(
    ctx: RequestContext, request: OffsetCommitRequest, lines: list[Line], answer: _Answer
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    group_id = request.group_id
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return answer.add_all(lines, shard)
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
        return answer.add_all(lines, error)
    metadata_max = ctx.broker.groups.offset_metadata_max
    commits: list[tuple[str, int, OffsetAndMetadata]] = []
    outcome: list[ErrorCode] = []
    now_ms = shard.now_ms(group_id)
    for _, topic, topic_id, partition in lines:
        metadata = partition.committed_metadata
        if metadata is not None and len(metadata) > metadata_max:
            outcome.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        refused = shard.consumers.check_partition(
            group_id,
            request.member_id,
            request.generation_id_or_member_epoch,
            topic_id,
            partition.partition_index,
        )
        if refused is not NONE:
            outcome.append(refused)
            continue
        value = _value(partition, topic_id, now_ms, request.retention_time_ms)
        commits.append((topic, partition.partition_index, value))
        outcome.append(NONE)

    def whole(error: ErrorCode) -> OffsetCommitResponse:
        for line, verdict in zip(lines, outcome, strict=True):
            answer.add(line, error or verdict)
        return answer.response

    return deferred(shard, whole, shard.commit(group_id, commits))


def _value(
    partition: OffsetCommitRequestPartition, topic_id: bytes, now_ms: int, retention_ms: int
) -> OffsetAndMetadata:
    expiry = NO_TIMESTAMP if retention_ms == KEEP_FOR_RETENTION else now_ms + retention_ms
    return OffsetAndMetadata(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        expiry,
        topic_id,
    )


class _Answer:
    """The response as it grows.

    Topics are as the request has them. Only once a partition has been refused are entries of the
    same topic taken together (OffsetCommitResponse.Builder.merge).
    """

    __slots__ = ("_merging", "_topics", "response")

    def __init__(self) -> None:
        self.response = OffsetCommitResponse()
        self._topics: dict[str | bytes | int, OffsetCommitResponseTopic] = {}
        self._merging = False

    def refuse(self, name: str, topic_id: bytes, index: int, error: ErrorCode) -> None:
        """A partition that does not exist. All of these come before the first `add`."""
        self._merging = True
        self._put(_identity(name, topic_id), name, topic_id, index, error)

    def add(self, line: Line, error: ErrorCode) -> None:
        """The outcome of a partition that exists."""
        _, name, topic_id, partition = line
        key = _identity(name, topic_id) if self._merging else line.entry
        self._put(key, name, topic_id, partition.partition_index, error)

    def add_all(self, lines: list[Line], error: ErrorCode) -> OffsetCommitResponse:
        """The same outcome for all of them, and the whole."""
        for line in lines:
            self.add(line, error)
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
    """What tells topics apart: the name, or the id of a topic that nobody knows by name."""
    return name or topic_id
