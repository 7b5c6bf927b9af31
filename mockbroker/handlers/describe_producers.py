"""DescribeProducers (61): the idempotent producers that a replica remembers (KIP-664).

Followers answer as well, from their own logs: an administrator may ask for one of them.
"""

from __future__ import annotations

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.topic import why_invalid_name
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@api(ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0))
def describe_producers(
    ctx: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Tell the state of every producer of each partition that this broker has a copy of."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(ctx, topic.name, i) for i in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(ctx: RequestContext, topic: str, index: int) -> PartitionResponse:
    reason = why_invalid_name(topic)
    if reason is not None:
        return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if topic not in ctx.image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(index, error, error.sentence)
    partition = ctx.image.partition(topic, index)
    if partition is None:
        return PartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    replica = partition.replica(ctx.broker.node_id)
    if replica is None:
        return PartitionResponse(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return PartitionResponse(index, active_producers=_states(replica.log))


def _states(log: ReplicaLog) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_start,
        )
        for producer_id, entry in log.producers.entries.items()
    ]
