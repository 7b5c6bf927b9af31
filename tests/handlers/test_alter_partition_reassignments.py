"""AlterPartitionReassignments: ongoing and refused reassignments."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(3)
    node.cluster.create_topic("t", assignments={0: [1, 2], 1: [2, 1]})
    return node


def alter(
    node: Node,
    topics: dict[str, dict[int, list[int] | None]],
    version: int = 1,
    may_change_factor: bool = True,
) -> AlterPartitionReassignmentsResponse:
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor,
        topics=[
            ReassignableTopic(name, [ReassignablePartition(i, r) for i, r in partitions.items()])
            for name, partitions in topics.items()
        ],
    )
    response = ask(node, ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, version)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return response


@pytest.mark.covers("S48", "S309")
@pytest.mark.parametrize("version", [0, 1])
def test_each_partition_is_answered(node, version):
    response = alter(
        node,
        {"t": {0: [2, 3], 1: None, 9: [1]}, "none": {0: [1]}},
        version,
    )
    told = {
        (t.name, p.partition_index): (p.error_code, bool(p.error_message))
        for t in response.responses
        for p in t.partitions
    }
    assert told == {
        ("t", 0): (ErrorCode.NONE, False),
        ("t", 1): (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, False),
        ("t", 9): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("none", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
    }
    partition = node.cluster.topics["t"].partitions[0]
    assert (partition.replicas, partition.leader_id) == ([2, 3, 1], 1)
    node.advance(0)
    assert (partition.replicas, partition.leader_id) == ([2, 3], 2)


def test_a_partition_named_twice_is_judged_twice_by_the_state_before_the_request(node):
    """A move that the same request began is not under way yet, one to be called off still is."""
    node.cluster.stop_broker(3)

    def errors(*targets: list[int] | None) -> list[int]:
        moves = [ReassignablePartition(0, target) for target in targets]
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", moves)])
        response = ask(node, ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, 1)
        return [p.error_code for p in response.responses[0].partitions]

    partition = node.cluster.topics["t"].partitions[0]
    assert errors([3, 1], None) == [ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    assert partition.replicas == [3, 1, 2]
    assert errors(None, None) == [ErrorCode.NONE, ErrorCode.NONE]
    assert partition.replicas == [1, 2]
    assert errors([1], [2]) == [ErrorCode.NONE, ErrorCode.NONE]
    assert (partition.replicas, partition.leader_id) == ([2], 2)


def test_the_number_of_replicas_may_be_held(node):
    response = alter(node, {"t": {0: [1, 2, 3], 1: [1, 3]}}, may_change_factor=False)
    assert not response.allow_replication_factor_change
    (topic,) = response.responses
    assert [p.error_code for p in topic.partitions] == [
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.NONE,
    ]


def test_a_request_for_nothing_is_answered_with_an_empty_message(node):
    response = ask(
        node, ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(), 1
    )
    assert (response.error_code, response.error_message, response.responses) == (0, "", [])
