"""DescribeTopicPartitions (75): topics page by page, with eligible leaders (KIP-966)."""

from __future__ import annotations

from mockbroker.core.image import Image
from mockbroker.core.partition import Partition
from mockbroker.core.security.acls import Operation
from mockbroker.core.security.authorized_operations import TOPIC_OPERATIONS
from mockbroker.core.topic import INTERNAL_TOPICS
from mockbroker.handlers.authorization.access import Access
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.metadata import missing_topic_error
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)


@api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0))
def describe_topic_partitions(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics in order of name, from the cursor on, up to the limit of partitions."""
    cluster, cursor = ctx.cluster, request.cursor
    wanted = {topic.name for topic in request.topics} or set(ctx.image.topics)
    if cursor is not None and (
        cursor.partition_index < 0 or (request.topics and cursor.topic_name not in wanted)
    ):
        return _refuse(request)
    first = "" if cursor is None else cursor.topic_name
    names = sorted(name for name in wanted if name >= first)
    if cluster.authorizer is not None:
        access = Access(ctx)
        names = [name for name in names if access.topic(Operation.DESCRIBE, name)]
    limit = min(
        cluster.config_int("max.request.partition.size.limit"), request.response_partition_limit
    )
    return _describe(
        ctx, names, max(limit, 1), 0 if cursor is None else cursor.partition_index, first
    )


def _refuse(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name
            )
            for topic in request.topics
        ]
    )


def _describe(
    ctx: RequestContext, names: list[str], remaining: int, start: int, start_topic: str
) -> DescribeTopicPartitionsResponse:
    """At most `remaining` partitions of `names`; `start` is the first one told of `start_topic`."""
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        if remaining == 0:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=0)
            break
        topic = ctx.image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        begin = start if name == start_topic else 0
        end = min(begin + remaining, len(topic.partitions))
        told = [_partition(ctx.image, p, ctx.listener) for p in topic.partitions[begin:end]]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=told,
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if end < len(topic.partitions):
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=end)
            break
        remaining -= len(told)
    return response


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing_topic_error(name),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    image: Image, partition: Partition, listener: str
) -> DescribeTopicPartitionsResponsePartition:
    reachable = image.reachable_brokers(listener)
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=partition.leader_id if partition.leader_id in reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        # Clients take null for a broker that does not know of eligible leaders, and throw.
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=image.offline_replicas(partition, reachable),
    )
