"""DescribeLogDirs (35): the log directories of this broker, and the sizes of its replicas."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@api(
    ApiKey.DESCRIBE_LOG_DIRS,
    versions=(1, 5),
    authorize=clusterwide(AclOperation.DESCRIBE, has_message=False),
    refusal=Refusal(rows=None),
)
def describe_log_dirs(
    ctx: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Each directory with its replicas. The sizes of volumes are unknown (-1), as logs are in
    memory.
    """
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    failed = ctx.broker.log_dirs.failed
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
            if path in failed
            else DescribeLogDirsResult(log_dir=path, topics=_topics(ctx, path, wanted))
            for path in ctx.broker.log_dirs.paths
        ]
    )


def _topics(
    ctx: RequestContext, path: str, wanted: dict[str, set[int]] | None
) -> list[DescribeLogDirsTopic]:
    """The replicas in one directory, of the partitions in the request."""
    topics = []
    for name in ctx.image.topics if wanted is None else wanted:
        topic = ctx.image.topics.get(name)
        indexes = None if wanted is None else wanted[name]
        partitions = [] if topic is None else list(_replicas(ctx.broker, topic, indexes, path))
        if partitions:
            topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
    return topics


def _replicas(
    broker: Broker, topic: Topic, indexes: set[int] | None, path: str
) -> Iterator[DescribeLogDirsPartition]:
    log_dirs = broker.log_dirs
    for partition in topic.partitions:
        replica = partition.replica(broker.node_id)
        if replica is None or (indexes is not None and partition.index not in indexes):
            continue
        if log_dirs.dir_of(partition) == path:
            yield DescribeLogDirsPartition(
                partition_index=partition.index, partition_size=replica.log.size
            )
        if log_dirs.futures.get(partition.key) == path:
            # The future replica is still empty.
            yield DescribeLogDirsPartition(
                partition_index=partition.index,
                offset_lag=replica.log.end_offset,
                is_future_key=True,
            )
