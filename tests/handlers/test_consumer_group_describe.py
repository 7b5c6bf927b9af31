"""ConsumerGroupDescribe: groups, also during a rebalance."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from tests.support.consumer_node import ConsumerNode
from tests.support.group_node import join_request


@pytest.fixture
def node() -> ConsumerNode:
    return ConsumerNode()


def describe(node: ConsumerNode, *groups: str, version: int = 1, **fields: Any) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=list(groups), **fields)
    return node.ask(request, version).groups


def partitions(assignment: Any) -> dict[str, list[int]]:
    return {line.topic_name: line.partitions for line in assignment.topic_partitions}


def test_a_group_is_described_with_its_members(node: ConsumerNode) -> None:
    node.joins("g", "m", instance_id="i", rack_id="r")
    (group,) = describe(node, "g")
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    assert group.authorized_operations == -(2**31)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.member_epoch, member.member_type) == (2, 1)
    assert (member.client_id, member.client_host) == ("tester", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t"], "")
    assert partitions(member.assignment) == {"t": [0, 1, 2]}
    assert partitions(member.target_assignment) == {"t": [0, 1, 2]}


@pytest.mark.covers("S196")
def test_what_a_member_has_yet_to_give_up_is_still_its_own(node: ConsumerNode) -> None:
    node.joins("g", "a")
    node.joins("g", "b")
    node.beats("g", "a", 2)
    (group,) = describe(node, "g")
    assert group.group_state == "Reconciling"
    by_id = {member.member_id: member for member in group.members}
    assert partitions(by_id["a"].assignment) == {"t": [0, 1, 2]}
    assert len(partitions(by_id["a"].target_assignment)["t"]) == 2
    assert partitions(by_id["b"].assignment) == {}


@pytest.mark.covers("S196")
def test_a_group_that_waits_for_its_target_is_assigning() -> None:
    node = ConsumerNode(configs={"group.consumer.assignment.interval.ms": "1000"})
    node.joins("g", "a")
    node.joins("g", "b")
    (group,) = describe(node, "g")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Assigning", 3, 2)
    listed = node.ask(ListGroupsRequest(states_filter=["ASSIGNING"], types_filter=["consumer"]))
    assert [(g.group_id, g.group_state, g.group_type) for g in listed.groups] == [
        ("g", "Assigning", "consumer")
    ]


def test_classic_members_are_told_apart_since_version_1(node: ConsumerNode) -> None:
    node.joins("g", "a")
    given = node.ask(join_request("g")).member_id
    node.ask(join_request("g", given))
    for version, expected in ((0, {-1}), (1, {0, 1})):
        (group,) = describe(node, "g", version=version)
        assert {member.member_type for member in group.members} == expected


def test_groups_are_found_by_the_describe_of_their_kind_only(node: ConsumerNode) -> None:
    node.joins("new", "m")
    node.stable("classic")
    missing, classic = describe(node, "missing", "classic")
    for group in (missing, classic):
        assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert group.error_message
    (old,) = node.ask(DescribeGroupsRequest(groups=["new"]), 6).groups
    assert (old.error_code, old.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    (old,) = node.ask(DescribeGroupsRequest(groups=["new"]), 5).groups
    assert (old.error_code, old.group_state) == (0, "Dead")


def test_operations_are_shown_to_those_who_ask(node: ConsumerNode) -> None:
    node.joins("g", "m")
    found, missing = describe(node, "g", "x", include_authorized_operations=True)
    assert found.authorized_operations > 0
    assert missing.authorized_operations == -(2**31)


def test_only_the_coordinator_answers() -> None:
    node = ConsumerNode(offsets_topic=False)
    (group,) = describe(node, "g")
    assert group.error_code == ErrorCode.NOT_COORDINATOR


def test_deleted_topics_are_left_out(node: ConsumerNode) -> None:
    node.joins("g", "m")
    node.cluster.delete_topic("t")
    (group,) = describe(node, "g")
    assert partitions(group.members[0].assignment) == {}
