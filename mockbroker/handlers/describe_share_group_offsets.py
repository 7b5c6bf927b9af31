"""DescribeShareGroupOffsets (90): start offsets and lags of share partitions (KIP-932, KIP-1226).

Any broker reads the state of named partitions. Only the coordinator of a group knows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.ids import ZERO_UUID
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_group,
    on_topic,
    requires,
    split,
)
from mockbroker.handlers.base import CombinedReply, Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.rows import Rows
from mockbroker.handlers.share_groups import share_groups_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from mockbroker_protocol.messages.read_share_group_state_summary import (
        PartitionResult,
        ReadShareGroupStateSummaryResponse,
    )

NONE = ErrorCode.NONE
UNINITIALIZED = -1  # PartitionFactory: of a start offset, a lag and a delivery complete count
Group = DescribeShareGroupOffsetsResponseGroup
Topic = DescribeShareGroupOffsetsResponseTopic
Partition = DescribeShareGroupOffsetsResponsePartition


@api(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    versions=(0, 1),
    authorize=by_handler(
        requires(on_group(AclOperation.DESCRIBE)),
        requires(on_topic(AclOperation.DESCRIBE), about="each one named"),
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each with share state, if none is named",
            otherwise="left out",
        ),
    ),
    refusal=Refusal(repeats_code=True),
    rows=Rows("groups", "groups"),
)
def describe_share_group_offsets(
    ctx: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> Parked[DescribeShareGroupOffsetsResponse]:
    """A partition without state is no error: its start offset is -1, as in OffsetFetch."""
    groups = [Group(group_id=wanted.group_id) for wanted in request.groups]
    combined = CombinedReply(len(groups), lambda: DescribeShareGroupOffsetsResponse(groups=groups))
    for wanted, group in zip(request.groups, groups, strict=True):
        _describe(ctx, wanted, group, combined.part_done)
    return combined.reply


def _describe(
    ctx: RequestContext,
    wanted: DescribeShareGroupOffsetsRequestGroup,
    group: Group,
    done: Callable[[], None],
) -> None:
    auth = AuthHelper(ctx)
    if not share_groups_enabled(ctx):
        group.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif not auth.group(AclOperation.DESCRIBE, wanted.group_id):
        group.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif wanted.topics is None:
        _describe_all(auth, group, done)
        return
    else:
        topics, denied = split(
            wanted.topics, lambda topic: auth.topic(AclOperation.DESCRIBE, topic.topic_name)
        )
        which: dict[bytes, tuple[int, ...]] = {}
        later: list[Topic] = []
        for topic in topics:
            found = ctx.image.topics.get(topic.topic_name)
            if found is None:
                later.append(_without_state(topic.topic_name, topic.partitions, NONE))
            else:
                which[found.topic_id] = tuple(topic.partitions)
        refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        later += (_without_state(t.topic_name, t.partitions, refusal) for t in denied)
        _read(ctx, group, which, later, done)
        return
    done()


def _describe_all(auth: AuthHelper, group: Group, done: Callable[[], None]) -> None:
    """All initialized partitions of a group that this broker coordinates."""
    ctx, group_id = auth.ctx, group.group_id
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        group.error_code, group.error_message = shard, shard.message
        done()
        return
    found = shard.shares.get(group_id)
    initialized = {} if found is None else found.partitions.initialized_partitions()
    which: dict[bytes, tuple[int, ...]] = {}
    for topic_id, partitions in initialized.items():
        topic = ctx.image.topics_by_id.get(topic_id)
        if topic is not None and auth.topic(AclOperation.DESCRIBE, topic.name):
            which[topic_id] = tuple(sorted(partitions))
    _read(ctx, group, which, [], done)


def _without_state(name: str, partitions: Iterable[int], error: ErrorCode) -> Topic:
    """A topic that does not exist, or that the client may not describe."""
    message = error.message if error is not NONE else None
    return Topic(
        topic_name=name,
        topic_id=ZERO_UUID,
        partitions=[
            Partition(
                partition_index=index,
                start_offset=UNINITIALIZED,
                error_code=error,
                error_message=message,
            )
            for index in partitions
        ],
    )


def _read(
    ctx: RequestContext,
    group: Group,
    which: dict[bytes, tuple[int, ...]],
    later: list[Topic],
    done: Callable[[], None],
) -> None:
    """Read the state of partitions; topics in `later` follow in the answer."""
    if not which:
        group.topics = later
        done()
        return
    from mockbroker.core.groups.share.state_requests import summary_request
    from mockbroker.core.share.operations import READ_SUMMARY

    request = summary_request(group.group_id, which)
    then = partial(_respond, ctx, group, later, done)
    ctx.broker.share_persister.send(READ_SUMMARY, request, then)


def _respond(
    ctx: RequestContext,
    group: Group,
    later: list[Topic],
    done: Callable[[], None],
    summary: ReadShareGroupStateSummaryResponse,
) -> None:
    topics = []
    for result in summary.results:
        topic = ctx.image.topics_by_id.get(result.topic_id)
        name = "" if topic is None else topic.name
        partitions = [_partition(ctx, name, each) for each in result.partitions]
        topics.append(Topic(topic_name=name, topic_id=result.topic_id, partitions=partitions))
    group.topics = [*topics, *later]
    done()


def _partition(ctx: RequestContext, topic: str, result: PartitionResult) -> Partition:
    index = result.partition
    if result.error_code != NONE:
        return Partition(partition_index=index, start_offset=UNINITIALIZED, lag=UNINITIALIZED)
    start, count = result.start_offset, result.delivery_complete_count
    lag = UNINITIALIZED
    if UNINITIALIZED not in (start, count):
        end = _end_offset(ctx, topic, index)
        if end is None:
            error = ErrorCode.LEADER_NOT_AVAILABLE
            return Partition(partition_index=index, error_code=error, error_message=error.message)
        lag = end - start - count
    return Partition(
        partition_index=index, start_offset=start, leader_epoch=result.leader_epoch, lag=lag
    )


def _end_offset(ctx: RequestContext, topic: str, index: int) -> int | None:
    """The high watermark of a partition; None if it has no leader.

    Kafka sends ListOffsets to the leader (NetworkPartitionMetadataClient).
    """
    found = ctx.image.partition(topic, index)
    if found is None or found.leader_id not in ctx.image.brokers:
        return None
    return found.high_watermark
