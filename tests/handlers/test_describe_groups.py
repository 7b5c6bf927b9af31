"""DescribeGroups: each state by name, members with the agreed protocol."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from tests.support.group_node import (
    GroupNode,
    commit_request,
    join_request,
    leave_request,
    subscription,
)

VERSIONS = range(7)
NOT_ASKED = -(2**31)


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def describe(node: GroupNode, group: str = "g", version: int = 6) -> DescribedGroup:
    (described,) = node.ask(DescribeGroupsRequest(groups=[group]), version).groups
    assert isinstance(described, DescribedGroup)
    return described


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_that_is_not_there_is_dead(node: GroupNode, version: int) -> None:
    """Since v6 that is an error with a message (KIP-1043)."""
    described = describe(node, "none", version)
    expected = DescribedGroup(group_id="none", group_state="Dead")
    if version >= 6:
        expected.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        expected.error_message = "Group none not found."
    assert described == expected


def test_another_broker_and_a_loading_coordinator() -> None:
    node = GroupNode(racks=(None, None))
    errors = set()
    for broker in (1, 2):
        (line,) = node.ask(DescribeGroupsRequest(groups=["g"]), 5, broker=broker).groups
        errors.add((line.error_code, line.group_state))
    assert errors == {(ErrorCode.NOT_COORDINATOR, ""), (ErrorCode.NONE, "Dead")}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stable_group(node: GroupNode, version: int) -> None:
    fields = {"group_instance_id": "i"}
    (member,) = node.stable(**fields)
    assert describe(node, version=version) == DescribedGroup(
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedGroupMember(
                member_id=member,
                group_instance_id="i" if version >= 4 else None,
                client_id="tester",
                client_host="/127.0.0.1",
                member_metadata=subscription("t"),
                member_assignment=member.encode(),
            )
        ],
        authorized_operations=NOT_ASKED,
    )


def test_the_states_of_a_scripted_round(node: GroupNode) -> None:
    """Protocol and metadata are shown when the group is Stable, and only then."""
    states = [describe(node, version=5).group_state]
    node.ask(commit_request({("t", 0): 1}))
    states.append(describe(node).group_state)
    first = node.member()
    states.append(describe(node).group_state)
    (waiting,) = describe(node).members
    assert (describe(node).protocol_data, waiting.member_metadata) == ("", b"")
    node.ask(leave_request("g", first))
    node.stable(count=1)
    states.append(describe(node).group_state)
    node.send(join_request("g", node.ask(join_request()).member_id))
    states.append(describe(node).group_state)
    assert states == ["Dead", "Empty", "CompletingRebalance", "Stable", "PreparingRebalance"]


@pytest.mark.parametrize("version", range(3, 7))
def test_authorized_operations_are_shown_on_request(node: GroupNode, version: int) -> None:
    """Without an authorizer all there are; not for a group with an error."""
    node.stable()
    request = DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=True)
    found, missing = node.ask(request, version).groups
    assert found.authorized_operations == 3400
    assert missing.authorized_operations == (NOT_ASKED if version >= 6 else 3400)


def test_groups_are_described_in_the_order_asked_for(node: GroupNode) -> None:
    names = ["b", "a", "c", "a"]
    groups = node.ask(DescribeGroupsRequest(groups=names)).groups
    assert [group.group_id for group in groups] == names
