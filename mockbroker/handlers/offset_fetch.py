"""OffsetFetch (9): the committed offsets of groups.

A request has one group before v8 and several since. A response has errors of groups since v8, an
error of its only group since v2, and in v1 errors of partitions alone.

A response has replicated offsets only. With `require_stable` it waits until all earlier commits are
replicated; without, it has the offsets replicated by now (GroupCoordinatorService.fetchOffsets).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from mockbroker.core.groups.offsets import (
    INVALID_OFFSET,
    OffsetAndMetadata,
    OffsetStore,
    is_of_other_topic,
)
from mockbroker.core.ids import ZERO_UUID
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import CombinedReply, Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.rows import Rows
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard

GROUP_ERROR_SINCE = 2
BATCHES_SINCE = 8
TOPIC_IDS_SINCE = 10


@api(
    ApiKey.OFFSET_FETCH,
    versions=(1, 10),
    authorize=by_handler(
        requires(on_group(AclOperation.DESCRIBE)),
        requires(on_topic(AclOperation.DESCRIBE), about="each one named"),
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each with offsets, if none is named",
            otherwise="left out",
        ),
    ),
    refusal=Refusal(
        fixed={
            "OffsetFetchResponsePartition": {"committed_offset": INVALID_OFFSET},
            "OffsetFetchResponsePartitions": {"committed_offset": INVALID_OFFSET},
        }
    ),
    rows=Rows("groups", "groups"),
)
def offset_fetch(
    ctx: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Parked[OffsetFetchResponse]:
    """A group or partition without offsets is no error: its offset is -1."""
    auth = AuthHelper(ctx)
    wanted = request.groups
    if ctx.api_version < BATCHES_SINCE:
        wanted = [OffsetFetchRequestGroup(group_id=request.group_id, topics=_topics_of(request))]
    late: list[tuple[GroupShard, OffsetFetchResponseGroup]] = []
    groups = [_fetch(auth, group, request.require_stable, late) for group in wanted]
    if not late:
        return _response(ctx, request, groups)
    combined = CombinedReply(len(late), lambda: _response(ctx, request, groups))
    for shard, group in late:
        shard.when_replicated(partial(_replicated, group, combined))
    return combined.reply


def _replicated(
    group: OffsetFetchResponseGroup, combined: CombinedReply[OffsetFetchResponse], error: ErrorCode
) -> None:
    if error:
        # For every error: consumers before 3.9 have no other (handleOffsetFetchException).
        group.error_code, group.topics = ErrorCode.NOT_COORDINATOR, []
    combined.part_done()


def _topics_of(request: OffsetFetchRequest) -> list[OffsetFetchRequestTopics] | None:
    """The topics of a request before v8; None for all."""
    if request.topics is None:
        return None
    return [
        OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes)
        for t in request.topics
    ]


def _response(
    ctx: RequestContext, request: OffsetFetchRequest, groups: list[OffsetFetchResponseGroup]
) -> OffsetFetchResponse:
    if ctx.api_version >= BATCHES_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    if group.error_code and ctx.api_version < GROUP_ERROR_SINCE:
        error = cast("ErrorCode", group.error_code)
        refusal: OffsetFetchResponse = ctx.refusal(request, error)
        return refusal
    return OffsetFetchResponse(
        error_code=group.error_code, topics=[_old_topic(topic) for topic in group.topics]
    )


def _fetch(
    auth: AuthHelper,
    wanted: OffsetFetchRequestGroup,
    require_stable: bool,
    late: list[tuple[GroupShard, OffsetFetchResponseGroup]],
) -> OffsetFetchResponseGroup:
    """The offsets of a group. It is added to `late` if it has to wait for replication."""
    ctx, group_id = auth.ctx, wanted.group_id
    if not auth.group(AclOperation.DESCRIBE, group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponseGroup(group_id=group_id, error_code=error)
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_id, error_code=shard)
    group = shard.groups.get(group_id)
    if group is not None:
        error = group.check_fetch(wanted.member_id, wanted.member_epoch)
        if error is not ErrorCode.NONE:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=error)
    offsets = shard.offsets
    if not require_stable and not shard.is_replicated:
        from mockbroker.core.groups.loader import replicated_offsets

        offsets = replicated_offsets(shard.partition)
    if wanted.topics is None:
        topics = _all_topics(auth, offsets, group_id, require_stable)
    else:
        topics = [_topic(auth, offsets, group_id, t, require_stable) for t in wanted.topics]
        # Refused topics come last (KafkaApis.fetchOffsetsForGroup).
        topics.sort(key=_is_refused)
    answer = OffsetFetchResponseGroup(group_id=group_id, topics=topics)
    if require_stable and not shard.is_replicated:
        late.append((shard, answer))
    return answer


def _is_refused(topic: OffsetFetchResponseTopics) -> bool:
    refusals = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID)
    return any(p.error_code in refusals for p in topic.partitions[:1])


def _topic(
    auth: AuthHelper,
    store: OffsetStore,
    group_id: str,
    wanted: OffsetFetchRequestTopics,
    require_stable: bool,
) -> OffsetFetchResponseTopics:
    name, topic_id = wanted.name, wanted.topic_id
    if auth.ctx.api_version >= TOPIC_IDS_SINCE:
        found = auth.ctx.image.topics_by_id.get(topic_id)
        if found is None:
            return _refused(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        name = found.name
    if not auth.topic(AclOperation.DESCRIBE, name):
        return _refused(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    offsets = store.of_group(group_id).get(name, {})
    partitions = []
    for index in wanted.partition_indexes:
        value = offsets.get(index)
        if value is not None and is_of_other_topic(value, topic_id):
            value = None
        unstable = require_stable and store.has_pending(group_id, name, index)
        partitions.append(_partition(index, value, unstable))
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)


def _refused(wanted: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        wanted.name,
        wanted.topic_id,
        [_no_offset(index, error) for index in wanted.partition_indexes],
    )


def _all_topics(
    auth: AuthHelper, store: OffsetStore, group_id: str, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    topics = []
    for name, offsets in store.of_group(group_id).items():
        if not auth.topic(AclOperation.DESCRIBE, name):
            continue
        topic_id = ZERO_UUID
        if auth.ctx.api_version >= TOPIC_IDS_SINCE:
            found = auth.ctx.image.topics.get(name)
            if found is None:
                continue  # the response cannot name it
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
        return _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if value is None:
        return _no_offset(index, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _no_offset(index: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=INVALID_OFFSET, error_code=error
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
