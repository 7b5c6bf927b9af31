"""OffsetFetch: how far has a group read?

The request has one group before v8 and several since; the response has an error for each group
since v8, one for its only group from v2 on, and none in v1, where each partition carries it.

What is told is replicated: with `require_stable` the answer waits until all commits are that came
before it; without, it tells of those that are by now (GroupCoordinatorService.fetchOffsets).
"""

from __future__ import annotations

from functools import partial

from mockbroker.core.groups.loader import replicated_offsets
from mockbroker.core.groups.offsets import (
    INVALID_OFFSET,
    OffsetAndMetadata,
    OffsetStore,
    is_of_other_topic,
)
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.ids import ZERO_UUID
from mockbroker.handlers.base import Gathering, Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERROR_SINCE = 2
BATCHES_SINCE = 8
TOPIC_IDS_SINCE = 10


@api(ApiKey.OFFSET_FETCH, versions=(1, 10))
def offset_fetch(
    ctx: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Parked[OffsetFetchResponse]:
    """A group or partition without offsets is no error: its offset is -1."""
    wanted = request.groups
    if ctx.api_version < BATCHES_SINCE:
        wanted = [OffsetFetchRequestGroup(group_id=request.group_id, topics=_topics_of(request))]
    late: list[tuple[GroupShard, OffsetFetchResponseGroup]] = []
    groups = [_fetch(ctx, group, request.require_stable, late) for group in wanted]
    if not late:
        return _response(ctx.api_version, request, groups)
    gathering = Gathering(len(late), lambda: _response(ctx.api_version, request, groups))
    for shard, group in late:
        shard.when_replicated(partial(_replicated, group, gathering))
    return gathering.reply


def _replicated(
    group: OffsetFetchResponseGroup, gathering: Gathering[OffsetFetchResponse], error: ErrorCode
) -> None:
    if error:
        # Whichever it is: consumers before 3.9 know of no other (handleOffsetFetchException).
        group.error_code, group.topics = ErrorCode.NOT_COORDINATOR, []
    gathering.part_done()


def _topics_of(request: OffsetFetchRequest) -> list[OffsetFetchRequestTopics] | None:
    """The topics of a request before v8; None for all."""
    if request.topics is None:
        return None
    return [
        OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes)
        for t in request.topics
    ]


def _response(
    version: int, request: OffsetFetchRequest, groups: list[OffsetFetchResponseGroup]
) -> OffsetFetchResponse:
    if version >= BATCHES_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    if group.error_code and version < GROUP_ERROR_SINCE:
        return _error_by_partition(request.topics or [], group.error_code)
    return OffsetFetchResponse(
        error_code=group.error_code, topics=[_old_topic(topic) for topic in group.topics]
    )


def _fetch(
    ctx: RequestContext,
    wanted: OffsetFetchRequestGroup,
    require_stable: bool,
    late: list[tuple[GroupShard, OffsetFetchResponseGroup]],
) -> OffsetFetchResponseGroup:
    """The answer for a group. It is put among those that are `late` if it has to wait."""
    group_id = wanted.group_id
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_id, error_code=shard)
    error = shard.consumers.check_fetch(group_id, wanted.member_id, wanted.member_epoch)
    if error is not ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=group_id, error_code=error)
    offsets = shard.offsets
    if not require_stable and not shard.is_replicated:
        offsets = replicated_offsets(shard.partition)
    if wanted.topics is None:
        topics = _all_topics(ctx, offsets, group_id, require_stable)
    else:
        topics = [_topic(ctx, offsets, group_id, t, require_stable) for t in wanted.topics]
        # Topics that were refused come last (KafkaApis.fetchOffsetsForGroup).
        topics.sort(key=_is_refused)
    answer = OffsetFetchResponseGroup(group_id=group_id, topics=topics)
    if require_stable and not shard.is_replicated:
        late.append((shard, answer))
    return answer


def _is_refused(topic: OffsetFetchResponseTopics) -> bool:
    return any(p.error_code == ErrorCode.UNKNOWN_TOPIC_ID for p in topic.partitions[:1])


def _topic(
    ctx: RequestContext,
    store: OffsetStore,
    group_id: str,
    wanted: OffsetFetchRequestTopics,
    require_stable: bool,
) -> OffsetFetchResponseTopics:
    name, topic_id = wanted.name, wanted.topic_id
    if ctx.api_version >= TOPIC_IDS_SINCE:
        found = ctx.image.topics_by_id.get(topic_id)
        if found is None:
            refused = [
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=INVALID_OFFSET,
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                )
                for index in wanted.partition_indexes
            ]
            return OffsetFetchResponseTopics(topic_id=topic_id, partitions=refused)
        name = found.name
    offsets = store.of_group(group_id).get(name, {})
    partitions = []
    for index in wanted.partition_indexes:
        value = offsets.get(index)
        if value is not None and is_of_other_topic(value, topic_id):
            value = None
        unstable = require_stable and store.has_pending(group_id, name, index)
        partitions.append(_partition(index, value, unstable))
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)


def _all_topics(
    ctx: RequestContext, store: OffsetStore, group_id: str, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    topics = []
    for name, offsets in store.of_group(group_id).items():
        topic_id = ZERO_UUID
        if ctx.api_version >= TOPIC_IDS_SINCE:
            found = ctx.image.topics.get(name)
            if found is None:
                continue  # without an id it cannot be named
            topic_id = found.topic_id
        partitions = [
            _partition(index, value, require_stable and store.has_pending(group_id, name, index))
            for index, value in offsets.items()
        ]
        topics.append(
            OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)
        )
    return topics


def _partition(
    index: int, value: OffsetAndMetadata | None, unstable: bool
) -> OffsetFetchResponsePartitions:
    if unstable:
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=INVALID_OFFSET,
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
        )
    if value is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=INVALID_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _old_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    """The same in the struct of v1-v7."""
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=p.partition_index,
                committed_offset=p.committed_offset,
                committed_leader_epoch=p.committed_leader_epoch,
                metadata=p.metadata,
                error_code=p.error_code,
            )
            for p in topic.partitions
        ],
    )


def _error_by_partition(
    topics: list[OffsetFetchRequestTopic], error_code: int
) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=INVALID_OFFSET,
                        error_code=error_code,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in topics
        ]
    )
