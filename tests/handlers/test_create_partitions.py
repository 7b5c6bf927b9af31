"""CreatePartitions: a higher total, never a lower one."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(3)
    node.cluster.create_topic("t", 2, 2)
    return node


def wish(
    name: str, count: int, assignments: list[list[int]] | None = None
) -> CreatePartitionsTopic:
    hand = None if assignments is None else [CreatePartitionsAssignment(a) for a in assignments]
    return CreatePartitionsTopic(name, count, hand)


def grow(
    node: Node, *topics: CreatePartitionsTopic, version: int = 3, **fields: object
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(list(topics), **{"timeout_ms": 1000, **fields})  # type: ignore[arg-type]
    results: list[CreatePartitionsTopicResult] = ask(
        node, ApiKey.CREATE_PARTITIONS, request, version
    ).results
    return results


@pytest.mark.covers("S40")
@pytest.mark.parametrize("version", range(4))
def test_new_partitions_come_empty_at_epoch_0_with_as_many_replicas(node, version):
    (result,) = grow(node, wish("t", 5), version=version)
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    partitions = node.cluster.topics["t"].partitions
    assert [(p.index, len(p.replicas), p.leader_epoch) for p in partitions] == [
        (n, 2, 0) for n in range(5)
    ]


def test_replicas_assigned_by_hand(node):
    grow(node, wish("t", 4, [[3, 1], [1, 2]]))
    assert [p.replicas for p in node.cluster.topics["t"].partitions[2:]] == [[3, 1], [1, 2]]


def test_validating_changes_nothing(node):
    (result,) = grow(node, wish("t", 5), validate_only=True)
    assert result.error_code == ErrorCode.NONE
    assert len(node.cluster.topics["t"].partitions) == 2


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (wish("t", 2), ErrorCode.INVALID_PARTITIONS),
        (wish("t", 1), ErrorCode.INVALID_PARTITIONS),
        (wish("t", -1), ErrorCode.INVALID_PARTITIONS),
        (wish("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("t", 3, [[1, 2], [2, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("t", 3, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("t", 3, [[1, 8]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_each_refusal_has_its_code_and_a_message(node, asked, error):
    (result,) = grow(node, asked)
    assert result.error_code == error
    assert result.error_message
    assert len(node.cluster.topics["t"].partitions) == 2


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (wish("none", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wish("t", 10_003), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_some_refusals_have_no_message_as_in_kafka(node, asked, error):
    (result,) = grow(node, asked)
    assert (result.error_code, result.error_message) == (error, None)


def test_a_topic_that_stands_twice_is_answered_once(node):
    node.cluster.create_topic("u")
    results = grow(node, wish("t", 3), wish("u", 2), wish("t", 4))
    assert [(r.name, r.error_code) for r in results] == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
    ]
    assert len(node.cluster.topics["t"].partitions) == 2


def test_without_time_nothing_is_done(node):
    (result,) = grow(node, wish("t", 3), timeout_ms=0)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert len(node.cluster.topics["t"].partitions) == 2
