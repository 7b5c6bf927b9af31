"""DeleteRecords: the log start moves, and the answer waits for every live replica."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import FollowerState
from mockbroker.handlers.base import Parked
from mockbroker.handlers.delete_records import delete_records
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.requests import Node, batch_of, done


def ask(node: Node, offset: int, *, topic="t", index=0, broker=1, timeout_ms=1000):
    partition = DeleteRecordsPartition(index, offset)
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [partition])], timeout_ms)
    return delete_records(node.ctx(2, broker=broker), request)


def result_of(answer) -> DeleteRecordsPartitionResult:
    (topic,) = done(answer).topics
    (result,) = topic.partitions
    return result


def outcome(answer) -> tuple[ErrorCode, int]:
    result = result_of(answer)
    return ErrorCode(result.error_code), result.low_watermark


def filled(node: Node, **configs: str) -> Partition:
    partition = node.topic(**configs)
    node.produced(batch_of(*[b"v"] * 10), acks=1)
    return partition


@pytest.mark.covers("S5", "S128")
def test_records_below_the_offset_are_gone():
    node = Node()
    filled(node)
    assert outcome(ask(node, 4)) == (ErrorCode.NONE, 4)
    assert node.fetched(("t", 0, 3)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert node.fetched(("t", 0, 4)).error_code == ErrorCode.NONE
    assert outcome(ask(node, 2)) == (ErrorCode.NONE, 4)
    assert outcome(ask(node, -1)) == (ErrorCode.NONE, 10)


def test_errors():
    node = Node(racks=(None, None))
    filled(node)
    node.topic("kept", cleanup_policy="compact")
    node.cluster.ensure_internal_topic("__consumer_offsets")
    cases = [
        (ask(node, 11), ErrorCode.OFFSET_OUT_OF_RANGE),
        (ask(node, -2), ErrorCode.OFFSET_OUT_OF_RANGE),
        (ask(node, 0, topic="missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ask(node, 0, index=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ask(node, 0, broker=2), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ask(node, 0, topic="kept"), ErrorCode.POLICY_VIOLATION),
        (ask(node, 0, topic="__consumer_offsets"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    for answer, error in cases:
        assert outcome(answer) == (error, -1)


@pytest.fixture
def lagging() -> tuple[Node, Partition, FollowerState]:
    """The second broker's copy has all the records, and has not heard of the log start."""
    node = Node(racks=(None, None))
    partition = node.topic()
    node.produced(batch_of(*[b"v"] * 10))
    node.cluster.replication.hold(partition, 2)
    return node, partition, partition.followers[2]


def test_the_answer_waits_for_replicas_that_have_not_heard(lagging):
    node, partition, _ = lagging
    answer = ask(node, 5)
    assert isinstance(answer, Parked)
    assert not answer.done
    node.cluster.replication.release(partition, 2)
    node.advance(0)
    assert outcome(answer) == (ErrorCode.NONE, 5)
    assert not partition._watchers


def test_past_the_timeout_the_low_watermark_so_far_is_told(lagging):
    node, _, state = lagging
    state.fetched_log_start = 3
    answer = ask(node, 5, timeout_ms=100)
    node.advance(100)
    assert outcome(answer) == (ErrorCode.REQUEST_TIMED_OUT, 3)


def test_a_leader_change_or_a_deletion_ends_the_wait(lagging):
    node, partition, _ = lagging
    answer = ask(node, 5)
    partition.become_leader(2, 1, [2])
    assert outcome(answer) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    partition.become_leader(1, 2, [1])
    answer = ask(node, 6)
    node.cluster.delete_topic("t")
    assert outcome(answer) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
