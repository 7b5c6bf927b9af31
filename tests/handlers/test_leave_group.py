"""LeaveGroup: one member before v3, many since, each with its own error."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from tests.support.group_node import GroupNode, heartbeat_request, leave_request

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


@pytest.mark.parametrize("version", range(6))
def test_a_group_needs_a_name(node: GroupNode, version: int) -> None:
    request = LeaveGroupRequest() if version < 3 else leave_request("", "m")
    assert node.ask(request, version) == LeaveGroupResponse(error_code=E.INVALID_GROUP_ID)


def test_another_broker_and_a_loading_coordinator_refuse_the_whole_request() -> None:
    node = GroupNode(racks=(None, None))
    request = leave_request("g", "m")
    errors = {node.ask(request, broker=b).error_code for b in (1, 2)}
    assert errors == {E.NOT_COORDINATOR, E.NONE}
    for broker in (1, 2):
        shard = node.cluster.brokers[broker].groups.shard_of("g")
        if not isinstance(shard, ErrorCode):
            shard.loading = True
            answer = node.ask(request, broker=broker)
            assert answer == LeaveGroupResponse(error_code=E.COORDINATOR_LOAD_IN_PROGRESS)


@pytest.mark.parametrize("version", range(3))
def test_before_v3_the_error_is_that_of_the_only_member(node: GroupNode, version: int) -> None:
    (member,) = node.stable()
    for name, error in (("ghost", E.UNKNOWN_MEMBER_ID), (member, E.NONE)):
        request = LeaveGroupRequest(group_id="g", member_id=name)
        assert node.ask(request, version) == LeaveGroupResponse(error_code=error)
    request = LeaveGroupRequest(group_id="unknown", member_id=member)
    assert node.ask(request, version).error_code == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
def test_since_v3_each_member_has_its_own_error(node: GroupNode, version: int) -> None:
    (member,) = node.stable()
    answer = node.ask(leave_request("g", "ghost", member), version)
    assert answer == LeaveGroupResponse(
        members=[
            MemberResponse("ghost", None, E.UNKNOWN_MEMBER_ID),
            MemberResponse(member, None, E.NONE),
        ]
    )
    assert node.shard().groups["g"].state.value == "Empty"


@pytest.mark.parametrize("version", range(3, 6))
def test_of_a_group_that_is_not_there_each_member_is_unknown(node: GroupNode, version: int) -> None:
    answer = node.ask(leave_request("nowhere", "m"), version)
    assert answer == LeaveGroupResponse(members=[MemberResponse("m", None, E.UNKNOWN_MEMBER_ID)])


def test_an_administrator_removes_a_static_member(node: GroupNode) -> None:
    (member,) = node.stable(group_instance_id="i")
    request = leave_request("g", MemberIdentity("", "i", "rolled"), MemberIdentity("", "j"))
    answer = node.ask(request)
    assert [line.error_code for line in answer.members] == [E.NONE, E.UNKNOWN_MEMBER_ID]
    assert node.ask(heartbeat_request("g", member, 1)).error_code == E.UNKNOWN_MEMBER_ID


def test_an_old_member_id_of_an_instance_cannot_leave(node: GroupNode) -> None:
    (member,) = node.stable(group_instance_id="i")
    node.stable(group_instance_id="i")
    answer = node.ask(leave_request("g", MemberIdentity(member, "i")))
    assert answer.members[0].error_code == E.FENCED_INSTANCE_ID


def test_the_last_member_to_leave_is_written_down(node: GroupNode) -> None:
    """Empty with the next generation, no protocol, no leader, no members."""
    (member,) = node.stable()
    before = len(node.log())
    node.ask(leave_request("g", member))
    (record,) = node.log()[before:]
    value = record.value
    assert value is not None
    assert value.startswith(b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\xff\xff\xff\xff")
    assert value.endswith(b"\x00\x00\x00\x00")
