"""ListPartitionReassignments: the ongoing reassignments."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.reassignment import reassign
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    """t-1 waits for broker 3, which is down."""
    node = nodes(3)
    for name in ("t", "u"):
        node.cluster.create_topic(name, assignments={0: [1, 2], 1: [1, 2]})
    node.cluster.brokers[3].fenced = True
    reassign(node.cluster.replication_control, "t", 1, [3, 1], may_change_factor=True)
    return node


def listed(node: Node, topics: dict[str, list[int]] | None) -> dict[tuple[str, int], object]:
    named = topics and [ListPartitionReassignmentsTopics(t, ids) for t, ids in topics.items()]
    request = ListPartitionReassignmentsRequest(topics=named)
    response = ask(node, ApiKey.LIST_PARTITION_REASSIGNMENTS, request)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return {
        (t.name, p.partition_index): (p.replicas, p.adding_replicas, p.removing_replicas)
        for t in response.topics
        for p in t.partitions
    }


@pytest.mark.covers("S48")
def test_replicas_on_their_way_in_and_out(node):
    assert listed(node, None) == {("t", 1): ([3, 1, 2], [3], [2])}


def test_named_partitions_choose(node):
    assert listed(node, {"t": [1, 9], "none": [0]}).keys() == {("t", 1)}
    assert listed(node, {"t": [0], "u": [1]}) == {}
