"""OffsetForLeaderEpoch (23): end offsets of leader epochs, to detect divergence (KIP-101)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import each_row, on_cluster, on_topic
from mockbroker.handlers.base import api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.handlers.base import RequestContext

_UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)


@api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=(2, 4),
    authorize=each_row(
        on_cluster(AclOperation.CLUSTER_ACTION), on_topic(AclOperation.DESCRIBE), name="topic"
    ),
)
def offset_for_leader_epoch(
    ctx: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Answer each partition from the leader epoch cache."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                wanted.topic,
                [
                    _answer(ctx, ctx.image.topics.get(wanted.topic), partition)
                    for partition in wanted.partitions
                ],
            )
            for wanted in request.topics
        ]
    )


def _answer(
    ctx: RequestContext, topic: Topic | None, wanted: OffsetForLeaderPartition
) -> EpochEndOffset:
    index = wanted.partition
    if topic is None or not 0 <= index < len(topic.partitions):
        return EpochEndOffset(_UNKNOWN_TOPIC_OR_PARTITION, index)
    partition = topic.partitions[index]
    node_id = ctx.broker.node_id
    if ctx.broker.log_dirs.is_offline(partition):
        return EpochEndOffset(_STORAGE_ERROR, index)
    if node_id not in partition.replicas:
        return EpochEndOffset(_NOT_LEADER, index)
    error = partition.check_leader_epoch(wanted.current_leader_epoch)
    if not error and partition.leader_id != node_id:
        error = _NOT_LEADER
    if error:
        return EpochEndOffset(error, index)
    log = partition.log
    epoch, end_offset = log.epochs.end_offset_for(wanted.leader_epoch, log.end_offset)
    return EpochEndOffset(0, index, epoch, end_offset)
