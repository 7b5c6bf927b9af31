"""Log directories: where replicas lie, how they move, and what a failed directory takes away."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.errors import ActionError
from mockbroker.core.events import LogDirFailed
from mockbroker.core.log.dirs import LogDirs
from mockbroker.core.replication.partition import Partition
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.replicas import Replicas
from tests.support.requests import only

TWO = {"log.dirs": "/a,/b"}


def partitions(node: Replicas, count: int) -> list[Partition]:
    assignments = {index: [1, 2, 3] for index in range(count)}
    return node.cluster.create_topic("many", assignments=assignments).partitions


def test_one_directory_holds_everything_and_remembers_nothing():
    node = Replicas()
    log_dirs = node.cluster.brokers[1].log_dirs
    assert log_dirs.paths == ("/tmp/kafka-logs",)
    assert log_dirs.dir_of(node.partition) == "/tmp/kafka-logs"
    assert not log_dirs.begin_move(node.partition, "/tmp/kafka-logs")
    assert not log_dirs.has_several


def test_new_replicas_go_to_the_emptiest_directory():
    node = Replicas(configs=TWO)
    log_dirs = node.cluster.brokers[2].log_dirs
    placed = [log_dirs.dir_of(p) for p in (node.partition, *partitions(node, 3))]
    assert placed == ["/a", "/b", "/a", "/b"]
    node.cluster.delete_topic("many")
    assert log_dirs.dir_of(partitions(node, 1)[0]) == "/b"


def test_a_replica_comes_to_where_it_was_wanted():
    node = Replicas(configs=TWO)
    log_dirs = node.cluster.brokers[1].log_dirs
    log_dirs.prefer("many", 0, "/a")
    assert log_dirs.dir_of(partitions(node, 1)[0]) == "/a"


def test_a_move_to_a_directory_that_fails_meanwhile_comes_to_nothing():
    node = Replicas(configs=TWO)
    log_dirs = node.cluster.brokers[1].log_dirs
    assert log_dirs.begin_move(node.partition, "/b")
    log_dirs.failed.add("/b")
    log_dirs.end_move(node.partition)
    assert log_dirs.dir_of(node.partition) == "/a"


def test_a_lone_set_of_directories_can_stand_by_itself():
    log_dirs = LogDirs(ClusterConfigs({"log.dirs": "/x,/y"}))
    assert log_dirs.paths == ("/x", "/y")


@pytest.mark.covers("S75")
def test_the_replicas_of_a_failed_directory_leave_and_answer_with_storage_errors():
    """The leader moves; on the broker with the failed directory requests get 56."""
    node = Replicas(configs=TWO)
    node.sent("a")
    lost, kept = node.partition, partitions(node, 1)[0]
    node.cluster.fail_log_dir(1, "/a")
    assert (lost.leader_id, lost.isr) == (2, [2, 3])
    assert (kept.leader_id, kept.isr) == (1, [1, 2, 3])
    assert LogDirFailed(node.now_ms, 1, "/a") in node.events
    assert only(node.send("b", broker=1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.fetched(("t", 0, 0), broker=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert list_offsets(node, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.sent("c").error_code == 0
    assert node.cluster.brokers[1].state == "running"


@pytest.mark.covers("S75")
def test_a_broker_without_a_directory_leaves_the_cluster():
    node = Replicas(configs=TWO)
    node.cluster.fail_log_dir(1)
    node.cluster.fail_log_dir(1)
    broker = node.cluster.brokers[1]
    assert (broker.state, broker.stopped_how, broker.fenced) == ("stopped", "unclean", True)
    node.cluster.start_broker(1)
    node.settle()
    assert sorted(node.partition.isr) == [1, 2, 3]
    assert broker.log_dirs.failed == set()


def test_a_partition_without_another_replica_waits_for_the_directory():
    node = Replicas(configs=TWO)
    (alone,) = node.cluster.create_topic("alone", assignments={0: [3]}).partitions
    path = node.cluster.brokers[3].log_dirs.dir_of(alone)
    node.cluster.fail_log_dir(3, path)
    assert (alone.leader_id, alone.isr) == (-1, [])
    assert node.cluster.image.offline_replicas(alone, {1, 2, 3}) == [3]
    node.cluster.stop_broker(3)
    node.cluster.start_broker(3)
    assert alone.leader_id == 3


@pytest.mark.parametrize(
    ("node_id", "path", "why"),
    [(9, None, "no broker 9"), (1, "/c", "no live log directory '/c'"), (2, None, "is stopped")],
)
def test_what_cannot_fail(node_id, path, why):
    node = Replicas(configs=TWO)
    node.cluster.stop_broker(2)
    with pytest.raises(ActionError, match=why):
        node.cluster.fail_log_dir(node_id, path)


def list_offsets(node: Replicas, broker: int) -> int:
    from mockbroker.handlers import list_offsets as handler

    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])])
    (topic,) = handler.list_offsets(node.ctx(7, broker=broker), request).topics
    return topic.partitions[0].error_code


def test_a_replica_that_is_removed_leaves_nothing_behind():
    node = Replicas(configs=TWO)
    log_dirs = node.cluster.brokers[1].log_dirs
    log_dirs.begin_move(node.partition, "/b")
    log_dirs.recovery_points[node.partition.key] = 3
    log_dirs.remove(node.partition)
    assert (log_dirs.futures, log_dirs.recovery_points) == ({}, {})


def test_a_move_back_to_where_the_replica_is_ends_the_one_before():
    node = Replicas(configs=TWO)
    log_dirs = node.cluster.brokers[1].log_dirs
    assert log_dirs.begin_move(node.partition, "/b")
    assert not log_dirs.begin_move(node.partition, "/a")
    assert log_dirs.futures == {}


def test_a_failed_directory_takes_only_its_own_replicas():
    node = Replicas(configs=TWO)
    log_dirs = node.cluster.brokers[1].log_dirs
    other = partitions(node, 1)[0]
    assert [log_dirs.dir_of(each) for each in (node.partition, other)] == ["/a", "/b"]
    log_dirs.failed.add("/b")
    assert [log_dirs.is_offline(each) for each in (node.partition, other)] == [False, True]
    assert [log_dirs.is_online(each) for each in (node.partition, other)] == [True, False]
