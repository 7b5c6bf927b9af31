"""ShareGroupDescribe: epochs, members, and groups that are not share groups."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.share_node import ShareNode


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


def test_a_group_is_described_with_its_members(node: ShareNode) -> None:
    node.joins("g", "m", rack_id="r")
    node.ticks("g", "m")
    (group,) = node.describes("g")
    assert (group.group_state, group.assignor_name) == ("Stable", "simple")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("m", "r", 3)
    assert (member.client_id, member.client_host) == ("tester", "/127.0.0.1")
    assert member.subscribed_topic_names == ["t"]
    (line,) = member.assignment.topic_partitions
    assert (line.topic_name, line.partitions) == ("t", [0, 1, 2])


def test_a_deleted_topic_is_left_out_of_an_assignment(node: ShareNode) -> None:
    node.stable("m")
    node.cluster.topic_control.delete("t")
    assert node.describes("g")[0].members[0].assignment.topic_partitions == []


def test_other_groups_are_not_found(node: ShareNode) -> None:
    node.member("classic")
    errors = [(each.error_code, each.error_message) for each in node.describes("", "x", "classic")]
    assert errors == [
        (ErrorCode.INVALID_GROUP_ID, None),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group x not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a share group."),
    ]


def test_operations_are_described_on_request(node: ShareNode) -> None:
    node.stable("m")
    (group,) = node.describes("g", include_authorized_operations=True)
    assert group.authorized_operations > 0
    assert node.describes("g")[0].authorized_operations < 0
