"""StreamsGroupDescribe: what a group, its topology and its members are like."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.security.acls import AclOperation
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from mockbroker_protocol.messages.streams_group_heartbeat import RequestEndpoint, TopicInfo
from tests.support.group_node import join_request
from tests.support.streams_node import StreamsNode, topology


@pytest.fixture
def node() -> StreamsNode:
    return StreamsNode()


def describe(node: StreamsNode, *groups: str, operations: bool = False) -> list[Any]:
    request = StreamsGroupDescribeRequest(list(groups), operations)
    found: list[Any] = node.ask(request, 0).groups
    return found


def test_a_group_is_described_with_its_configured_topology(node: StreamsNode) -> None:
    endpoint = RequestEndpoint("h", 7)
    changelog = topology("t", changelog=TopicInfo("c"))
    node.joins("g", "a", topology=changelog, user_endpoint=endpoint, rack_id="r")
    node.beats("g", "a", 2, {"0": [0, 1, 2]})
    node.joins("h", "b")  # Kafka describes groups as of the last record of their partition
    [group] = describe(node, "g", operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.authorized_operations & 1 << AclOperation.READ
    [subtopology] = group.topology.subtopologies
    assert [(each.name, each.partitions) for each in subtopology.state_changelog_topics] == [
        ("c", 3)
    ]
    [member] = group.members
    assert (member.member_id, member.process_id, member.rack_id) == ("a", "p-a", "r")
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("h", 7)
    assert [each.partitions for each in member.assignment.active_tasks] == [[0, 1, 2]]
    assert member.target_assignment == member.assignment


def test_until_something_is_written_a_topology_is_described_as_it_was_sent(
    node: StreamsNode,
) -> None:
    node.joins("g", "a", topology=topology("t", changelog=TopicInfo("c")))
    node.beats("g", "a", 2, {"0": [0, 1, 2]})
    [group] = describe(node, "g")
    assert group.topology.subtopologies[0].state_changelog_topics[0].partitions == 0


def test_a_topology_that_is_not_ready_is_described_as_it_was_sent(node: StreamsNode) -> None:
    node.joins("g", "a", topology=topology("missing"))
    [group] = describe(node, "g")
    assert group.group_state == "NotReady"
    assert group.topology.subtopologies[0].source_topics == ["missing"]


def test_what_is_no_streams_group_is_not_found(node: StreamsNode) -> None:
    node.ask(join_request("classic"), 3)
    unknown, classic, nameless = describe(node, "g", "classic", "")
    assert unknown.error_message == "Group g not found."
    assert classic.error_message == "Group classic is not a streams group."
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_without_the_feature_the_request_is_unsupported(node: StreamsNode) -> None:
    node.cluster.features.set_levels({"streams.version": 0})
    assert [each.error_code for each in describe(node, "g")] == [ErrorCode.UNSUPPORTED_VERSION]
