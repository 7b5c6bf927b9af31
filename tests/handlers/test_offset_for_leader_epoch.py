"""OffsetForLeaderEpoch: end offsets of epochs by the leader's history."""

from __future__ import annotations

import pytest

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.replica import Replica
from mockbroker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.replicas import follow
from tests.support.requests import Node, batch_of


def ask(node: Node, epoch: int, *, current=-1, topic="t", index=0, broker=1) -> EpochEndOffset:
    partition = OffsetForLeaderPartition(index, current, epoch)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, [partition])])
    (answer,) = offset_for_leader_epoch(node.ctx(4, broker=broker), request).topics
    (result,) = answer.partitions
    assert (answer.topic, result.partition) == (topic, index)
    return result


@pytest.fixture
def node() -> Node:
    """Epoch 0 wrote offsets 0-1, epoch 1 2-4, epoch 3 5-8."""
    node = Node(racks=(None, None))
    partition = node.topic()
    for epoch, count in ((0, 2), (1, 3), (3, 4)):
        if epoch:
            partition.become_leader(1, epoch, [1, 2])
        node.produced(batch_of(*[b"v"] * count))
    return node


@pytest.mark.covers("S86")
@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (3, (3, 9)), (1, (1, 5)), (0, (0, 2)), (2, (1, 5)), (7, (-1, -1))],
)
def test_the_end_of_an_epoch_has_four_branches(node, epoch, answer):
    result = ask(node, epoch)
    assert result.error_code == ErrorCode.NONE
    assert (result.leader_epoch, result.end_offset) == answer


def test_the_latest_epoch_ends_at_the_log_end_above_the_high_watermark(node):
    partition = node.cluster.topics["t"].partitions[0]
    follow(partition, Replica(2, ReplicaLog(9), 9))
    node.produced(batch_of(b"v"), acks=1)
    assert (partition.high_watermark, ask(node, 3).end_offset) == (9, 10)


def test_below_the_log_start_the_first_known_epoch_answers(node):
    node.cluster.topics["t"].partitions[0].delete_records(6)
    result = ask(node, 1)
    assert (result.leader_epoch, result.end_offset) == (1, 6)


def test_errors(node):
    cases = [
        (ask(node, 0, topic="missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ask(node, 0, index=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ask(node, 0, current=2), ErrorCode.FENCED_LEADER_EPOCH),
        (ask(node, 0, current=4), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (ask(node, 0, broker=2), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ask(node, 0, current=2, broker=2), ErrorCode.FENCED_LEADER_EPOCH),
    ]
    for result, error in cases:
        assert result.error_code == error
        assert (result.leader_epoch, result.end_offset) == (-1, -1)


def test_a_broker_without_a_copy_is_not_the_leader():
    node = Node(racks=(None, None))
    node.cluster.create_topic("t", assignments={0: [1]})
    result = ask(node, 0, current=9, broker=2)
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
