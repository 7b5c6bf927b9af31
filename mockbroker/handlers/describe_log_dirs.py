"""DescribeLogDirs (35): how large the replicas are that this broker holds."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker.core.broker import Broker
from mockbroker.core.topic import Topic
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@api(ApiKey.DESCRIBE_LOG_DIRS, versions=(1, 5))
def describe_log_dirs(
    ctx: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """One directory holds everything. Sizes of the volume are unknown (-1): it is memory."""
    wanted: list[tuple[str, list[int] | None]] = (
        [(name, None) for name in ctx.cluster.topics]
        if request.topics is None
        else [(topic.topic, topic.partitions) for topic in request.topics]
    )
    topics = []
    for name, indexes in wanted:
        topic = ctx.cluster.topics.get(name)
        partitions = [] if topic is None else list(_replicas(ctx.broker, topic, indexes))
        if partitions:
            topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(log_dir=ctx.broker.log_dirs.paths[0], topics=topics)]
    )


def _replicas(
    broker: Broker, topic: Topic, indexes: list[int] | None
) -> Iterator[DescribeLogDirsPartition]:
    for partition in topic.partitions:
        replica = partition.replica(broker.node_id)
        if replica is not None and (indexes is None or partition.index in indexes):
            yield DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=replica.log.size,
                offset_lag=max(partition.high_watermark - replica.log.end_offset, 0),
            )
