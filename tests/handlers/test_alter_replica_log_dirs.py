"""AlterReplicaLogDirs: one directory, so nothing moves."""

from __future__ import annotations

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.support.ask import ask, nodes


def test_only_the_directory_where_a_replica_is_fits():
    node = nodes(2, log_dirs="/data")
    node.cluster.create_topic("t", assignments={0: [1], 1: [2]})
    request = AlterReplicaLogDirsRequest(
        [
            AlterReplicaLogDir(
                "/data",
                [AlterReplicaLogDirTopic("t", [0, 1, 9]), AlterReplicaLogDirTopic("none", [0])],
            ),
            AlterReplicaLogDir("/other", [AlterReplicaLogDirTopic("t", [0])]),
        ]
    )
    for version in (1, 2):
        results = ask(node, ApiKey.ALTER_REPLICA_LOG_DIRS, request, version).results
        told = {
            r.topic_name: [(p.partition_index, p.error_code) for p in r.partitions] for r in results
        }
        assert told == {
            "t": [
                (0, ErrorCode.NONE),
                (1, ErrorCode.REPLICA_NOT_AVAILABLE),
                (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                (0, ErrorCode.LOG_DIR_NOT_FOUND),
            ],
            "none": [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
        }
