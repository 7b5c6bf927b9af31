"""AlterReplicaLogDirs (34): move replicas between the directories of one broker (KIP-113).

The directory of a replica that the broker does not have yet is stored, although it is refused.
"""

from __future__ import annotations

from functools import partial

from mockbroker.core.cluster import Cluster
from mockbroker.core.log.dirs import LogDirs
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


@api(
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    versions=(1, 2),
    authorize=clusterwide(AclOperation.ALTER, has_message=False),
    refusal=Refusal(sources={"results": "dirs.topics"}),
)
def alter_replica_log_dirs(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Start each move, or answer its error; the move ends a moment later."""
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
    """Start one move; the checks are in the order of ReplicaManager.alterReplicaLogDirs."""
    log_dirs = ctx.broker.log_dirs
    if path not in log_dirs.paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if path in log_dirs.failed:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = ctx.image.partition(topic, index)
    if partition is None or partition.replica(ctx.broker.node_id) is None:
        log_dirs.prefer(topic, index, path)
        unknown = partition is None
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if unknown else ErrorCode.REPLICA_NOT_AVAILABLE
    if not log_dirs.is_online(partition):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if log_dirs.begin_move(partition, path):
        ctx.cluster.runtime.timers.call_at(
            ctx.now_ms, partial(_end_move, ctx.cluster, log_dirs, partition)
        )
    return ErrorCode.NONE


def _end_move(cluster: Cluster, log_dirs: LogDirs, partition: Partition) -> None:
    log_dirs.end_move(partition)
    cluster.metadata.changed(partition.topic)
