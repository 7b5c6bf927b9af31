"""ListOffsets: each special value, look-ups by timestamp, and authorization."""

from __future__ import annotations

import pytest

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.replica import Replica
from mockbroker.handlers.list_offsets import list_offsets
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.records import update_crc
from tests.support.replicas import follow
from tests.support.requests import Node, batch_of, timed_batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


def ask(
    node: Node,
    timestamp: int,
    *,
    topic: str = "t",
    index: int = 0,
    version: int = 11,
    broker: int = 1,
    epoch: int = -1,
    replica_id: int = -1,
    isolation: int = 0,
) -> ListOffsetsPartitionResponse:
    partition = ListOffsetsPartition(index, epoch, timestamp)
    request = ListOffsetsRequest(replica_id, isolation, [ListOffsetsTopic(topic, [partition])])
    (answer,) = list_offsets(node.ctx(version, broker=broker), request).topics
    (response,) = answer.partitions
    assert (answer.name, response.partition_index) == (topic, index)
    return response


def found(response: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    """(offset, timestamp, leader epoch) of an answer without an error."""
    assert response.error_code == ErrorCode.NONE
    return response.offset, response.timestamp, response.leader_epoch


def error_of(response: ListOffsetsPartitionResponse) -> ErrorCode:
    assert (response.offset, response.timestamp, response.leader_epoch) == (-1, -1, -1)
    return ErrorCode(response.error_code)


@pytest.fixture
def node() -> Node:
    """Topic t holds timestamps 10, 30, 20 in one batch and 25 in a second one, epochs 0 and 2."""
    node = Node()
    partition = node.topic()
    node.produced(timed_batch(10, 30, 20))
    partition.become_leader(1, 2, [1])
    node.produced(timed_batch(25))
    return node


@pytest.mark.covers("S18")
def test_a_partition_that_was_never_written_ends_at_0():
    node = Node()
    node.topic()
    assert found(ask(node, LATEST)) == (0, -1, 0)
    assert found(ask(node, EARLIEST)) == (0, -1, 0)
    assert found(ask(node, MAX_TIMESTAMP)) == (-1, -1, -1)
    assert found(ask(node, 0)) == (-1, -1, -1)


@pytest.mark.covers("S27")
def test_special_values(node):
    assert found(ask(node, LATEST)) == (4, -1, 2)
    assert found(ask(node, EARLIEST)) == (0, -1, 0)
    assert found(ask(node, EARLIEST_LOCAL)) == (0, -1, 0)
    assert found(ask(node, MAX_TIMESTAMP)) == (1, 30, 0)
    assert found(ask(node, LATEST_TIERED)) == (-1, -1, -1)
    assert found(ask(node, PENDING_UPLOAD)) == (-1, -1, -1)
    node.cluster.topics["t"].partitions[0].delete_records(3)
    assert found(ask(node, EARLIEST)) == (3, -1, 2)


@pytest.mark.covers("S27")
def test_a_timestamp_is_looked_up_exactly_inside_a_batch(node):
    answers = {at: found(ask(node, at)) for at in (0, 10, 11, 30, 31)}
    assert answers == {
        0: (0, 10, 0),
        10: (0, 10, 0),
        11: (1, 30, 0),
        30: (1, 30, 0),
        31: (-1, -1, -1),
    }


@pytest.mark.parametrize(
    ("timestamp", "version", "supported"),
    [
        (LATEST, 1, True),
        (EARLIEST, 1, True),
        (MAX_TIMESTAMP, 6, False),
        (MAX_TIMESTAMP, 7, True),
        (EARLIEST_LOCAL, 7, False),
        (EARLIEST_LOCAL, 8, True),
        (LATEST_TIERED, 8, False),
        (LATEST_TIERED, 9, True),
        (PENDING_UPLOAD, 10, False),
        (PENDING_UPLOAD, 11, True),
        (-7, 11, False),
    ],
)
def test_special_values_need_their_version(node, timestamp, version, supported):
    response = ask(node, timestamp, version=version)
    expected = ErrorCode.NONE if supported else ErrorCode.UNSUPPORTED_VERSION
    assert response.error_code == expected


def test_a_special_value_that_is_too_new_is_told_even_for_an_unknown_topic(node):
    assert error_of(ask(node, -7, topic="missing")) is ErrorCode.UNSUPPORTED_VERSION
    assert error_of(ask(node, LATEST, topic="missing")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(ask(node, LATEST, index=1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice_is_refused_once(node):
    twice = [ListOffsetsPartition(0, -1, LATEST), ListOffsetsPartition(0, -1, EARLIEST)]
    topics = [ListOffsetsTopic("t", twice), ListOffsetsTopic("t", twice[:1])]
    (answer,) = list_offsets(node.ctx(11), ListOffsetsRequest(-1, 0, topics)).topics
    assert [partition.error_code for partition in answer.partitions] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.covers("S19")
def test_the_isolation_level_decides_where_the_log_ends(node):
    partition = node.cluster.topics["t"].partitions[0]
    partition.last_stable_offset = 1
    assert found(ask(node, LATEST)) == (4, -1, 2)
    assert found(ask(node, LATEST, isolation=1)) == (1, -1, 2)
    assert found(ask(node, 11)) == (1, 30, 0)
    assert found(ask(node, 11, isolation=1)) == (-1, -1, -1)
    assert found(ask(node, 10, isolation=1)) == (0, 10, 0)
    assert found(ask(node, MAX_TIMESTAMP, isolation=1)) == (-1, -1, -1)


def held_back() -> Node:
    """Two records, of which a follower has one."""
    node = Node(racks=(None, None))
    partition = node.topic()
    log = ReplicaLog(1)
    follow(partition, Replica(2, log, 0))
    for value in (b"a", b"b"):
        node.produced(batch_of(value), acks=1)
    return node


def test_replicas_and_debuggers_see_the_log_end_above_the_high_watermark():
    node = held_back()
    assert found(ask(node, LATEST)) == (1, -1, 0)
    assert found(ask(node, LATEST, replica_id=-2)) == (2, -1, 0)
    assert found(ask(node, LATEST, replica_id=2)) == (2, -1, 0)


def test_only_the_leader_answers_consumers():
    node = Node(racks=(None,) * 3)
    node.cluster.create_topic("t", assignments={0: [1, 2]})
    assert error_of(ask(node, LATEST, broker=2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found(ask(node, LATEST, broker=2, replica_id=-2)) == (0, -1, 0)
    nowhere = ask(node, LATEST, broker=3, replica_id=-2, epoch=9)
    assert error_of(nowhere) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_leader_epochs_are_compared_first(node):
    assert error_of(ask(node, LATEST, epoch=1)) is ErrorCode.FENCED_LEADER_EPOCH
    assert error_of(ask(node, LATEST, epoch=-2)) is ErrorCode.FENCED_LEADER_EPOCH
    assert error_of(ask(node, LATEST, epoch=3)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert found(ask(node, LATEST, epoch=2)) == (4, -1, 2)


@pytest.mark.parametrize(
    ("version", "error"),
    [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)],
)
def test_a_new_leader_waits_for_the_high_watermark_to_reach_its_epoch(version, error):
    node = held_back()
    partition = node.cluster.topics["t"].partitions[0]
    partition.become_leader(1, 1, [1, 2])
    assert error_of(ask(node, LATEST, version=version)) is error
    assert found(ask(node, EARLIEST, version=version))[0] == 0
    assert found(ask(node, 0, version=version))[0] == 0
    beyond = 1 << 50
    assert error_of(ask(node, beyond, version=version)) is error
    assert found(ask(node, LATEST, version=version, replica_id=-2))[0] == 2


def test_a_batch_that_was_taken_at_its_word_and_cannot_be_opened_is_a_server_error():
    node = Node()
    node.topic()
    batch = batch_of(b"x" * 2000)
    batch[61] = 2
    update_crc(batch)
    node.produced(batch)
    assert error_of(ask(node, 0)) is ErrorCode.UNKNOWN_SERVER_ERROR
