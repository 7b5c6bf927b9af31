"""DescribeTopicPartitions (75): topics page by page, with eligible leaders (KIP-966)."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.image import MetadataImage
from mockbroker.core.metadata.topic import INTERNAL_TOPICS
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_topic, requires, split
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


@api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    authorize=by_handler(
        requires(on_topic(AclOperation.DESCRIBE), about="each one named"),
        requires(
            on_topic(AclOperation.DESCRIBE), about="when all are asked for", otherwise="left out"
        ),
    ),
)
def describe_topic_partitions(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics in order of name, from the cursor on, up to the limit of partitions."""
    cursor = request.cursor
    named = {topic.name for topic in request.topics}
    if cursor is not None and (
        cursor.partition_index < 0 or (named and cursor.topic_name not in named)
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    first, start = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    auth = AuthHelper(ctx)
    granted, denied = split(
        sorted(name for name in named or ctx.image.topics if name >= first),
        lambda name: auth.topic(AclOperation.DESCRIBE, name),
    )
    limit = ctx.cluster.config_int("max.request.partition.size.limit")
    limit = max(min(limit, request.response_partition_limit), 1)
    response = _describe(auth, granted, limit, start, first)
    if named:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.topics += [DescribeTopicPartitionsResponseTopic(error, name) for name in denied]
    return response


def _describe(
    auth: AuthHelper, names: list[str], remaining: int, start: int, start_topic: str
) -> DescribeTopicPartitionsResponse:
    """At most `remaining` partitions of `names`; those of `start_topic` from `start` on."""
    ctx = auth.ctx
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        if remaining == 0:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=0)
            break
        topic = ctx.image.topics.get(name)
        operations = auth.operations(ResourceType.TOPIC, name)
        if topic is None:
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=missing_topic_error(name),
                    name=name,
                    is_internal=name in INTERNAL_TOPICS,
                    topic_authorized_operations=operations,
                )
            )
            continue
        begin = start if name == start_topic else 0
        end = min(begin + remaining, len(topic.partitions))
        partitions = [_partition(ctx.image, p, ctx.listener) for p in topic.partitions[begin:end]]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=partitions,
                topic_authorized_operations=operations,
            )
        )
        if end < len(topic.partitions):
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=end)
            break
        remaining -= len(partitions)
    return response


def _partition(
    image: MetadataImage, partition: Partition, listener: str
) -> DescribeTopicPartitionsResponsePartition:
    reachable = image.reachable_brokers(listener)
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=partition.leader_id if partition.leader_id in reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        # Clients throw at null, which is for brokers without eligible leader replicas.
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=image.offline_replicas(partition, reachable),
    )
