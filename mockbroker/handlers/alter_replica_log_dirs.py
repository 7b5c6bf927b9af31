"""AlterReplicaLogDirs (34): move replicas between directories. A broker here has only one."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


@api(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(1, 2))
def alter_replica_log_dirs(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Accept what asks for the directory where a replica already is; refuse the rest."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                error = _error(ctx, directory.path, topic.name, index)
                results.setdefault(topic.name, []).append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _error(ctx: RequestContext, path: str, topic: str, index: int) -> ErrorCode:
    if path != ctx.broker.log_dirs.paths[0]:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = ctx.cluster.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.replica(ctx.broker.node_id) is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE
