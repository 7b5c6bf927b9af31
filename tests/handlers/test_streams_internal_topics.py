"""Internal topics of streams groups, created by a broker that is not the controller."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.actions.registry import find_action, parse_action
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import TopicInfo
from tests.support.streams_node import StreamsNode, topology

CONTROLLER, OTHER = 1, 2
STATEFUL = topology("t", changelog=TopicInfo("c"))


@pytest.fixture
def node() -> StreamsNode:
    """Three brokers; the group's coordinator is a broker whose link to the controller is slow."""
    node = StreamsNode(racks=(None, None, None))
    moved = {"topic": "__consumer_offsets", "partition": 0, "node": OTHER}
    node.cluster.perform(find_action("move_leader"), parse_action("move_leader", moved))
    network = node.cluster.replication.network
    network.delay([(OTHER, CONTROLLER)], 300)
    network.delay([(CONTROLLER, OTHER)], 200)
    return node


def beat(node: StreamsNode, epoch: int) -> Any:
    return node.beats("g", "a", epoch, {}, broker=OTHER)


def test_a_topic_is_created_once_while_its_request_is_on_the_way(node: StreamsNode) -> None:
    answer = node.joins("g", "a", topology=STATEFUL, broker=OTHER)
    assert answer.status[0].status_detail == "Internal topics are missing: c"
    again = beat(node, answer.member_epoch)
    assert again.status[0].status_detail == "Internal topics are missing: c"
    node.advance(300)
    assert "c" in node.cluster.topics
    node.advance(1000)
    ready = beat(node, again.member_epoch)
    assert (ready.error_code, ready.status) == (ErrorCode.NONE, [])
    assert [each.partitions for each in ready.active_tasks] == [[0, 1, 2]]
