"""AlterReplicaLogDirs: replicas move between the directories of one broker."""

from __future__ import annotations

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockbroker_protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.ask import ask, nodes
from tests.support.requests import Node


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


def ask_for(node: Node, path: str, topic: str, *indexes: int) -> list[int]:
    request = AlterReplicaLogDirsRequest(
        [AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, list(indexes))])]
    )
    (result,) = ask(node, ApiKey.ALTER_REPLICA_LOG_DIRS, request).results
    return [partition.error_code for partition in result.partitions]


def describe(node: Node) -> dict[str, list[tuple[int, bool]]]:
    """The replicas of `t` in each directory of broker 1: partition, and whether it is to be."""
    response = ask(node, ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None))
    return {
        result.log_dir: [
            (partition.partition_index, partition.is_future_key)
            for topic in result.topics
            for partition in topic.partitions
        ]
        for result in response.results
    }


def test_a_replica_moves_to_another_directory():
    """Both are told while it moves; a moment later only the new one."""
    node = nodes(1, log_dirs="/a,/b")
    node.cluster.create_topic("t", partitions=2)
    assert describe(node) == {"/a": [(0, False)], "/b": [(1, False)]}
    assert ask_for(node, "/b", "t", 0, 1) == [ErrorCode.NONE, ErrorCode.NONE]
    assert describe(node) == {"/a": [(0, False)], "/b": [(0, True), (1, False)]}
    node.advance(0)
    assert describe(node) == {"/a": [], "/b": [(0, False), (1, False)]}


def test_a_move_can_be_called_off_by_another():
    node = nodes(1, log_dirs="/a,/b")
    node.cluster.create_topic("t")
    ask_for(node, "/b", "t", 0)
    assert ask_for(node, "/a", "t", 0) == [ErrorCode.NONE]
    node.advance(0)
    assert describe(node) == {"/a": [(0, False)], "/b": []}


def test_a_wish_for_a_replica_that_is_not_there_is_kept_although_it_is_refused():
    node = nodes(1, log_dirs="/a,/b")
    assert ask_for(node, "/b", "t", 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    node.cluster.create_topic("t")
    assert describe(node) == {"/a": [], "/b": [(0, False)]}


def test_a_failed_directory_is_no_place_to_go_to_or_to_come_from():
    node = nodes(1, log_dirs="/a,/b")
    node.cluster.create_topic("t", partitions=2)
    node.cluster.fail_log_dir(1, "/b")
    assert ask_for(node, "/b", "t", 0) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert ask_for(node, "/a", "t", 1) == [ErrorCode.KAFKA_STORAGE_ERROR]
    response = ask(node, ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None))
    told = {result.log_dir: result.error_code for result in response.results}
    assert told == {"/a": ErrorCode.NONE, "/b": ErrorCode.KAFKA_STORAGE_ERROR}
