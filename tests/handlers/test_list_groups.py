"""ListGroups: a broker lists its own groups, filtered by state and type."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.support.group_node import GroupNode, commit_request, join_request
from tests.support.streams_node import StreamsNode, topology


@pytest.fixture
def node() -> GroupNode:
    """Groups "simple" (Empty), "stable", "connect" (Stable) and "waiting" (CompletingRebalance)."""
    node = GroupNode()
    node.ask(commit_request({("t", 0): 1}, "simple"))
    node.stable("stable")
    node.stable("connect", protocol_type="connect")
    node.member("waiting")
    return node


def listed(node: GroupNode, version: int = 5, **filters: list[str]) -> set[str]:
    response = node.ask(ListGroupsRequest(**filters), version)
    assert response.error_code == 0
    return {group.group_id for group in response.groups}


@pytest.mark.parametrize("version", range(6))
def test_all_groups_with_what_the_version_shows(node: GroupNode, version: int) -> None:
    response = node.ask(ListGroupsRequest(), version)
    found = {group.group_id: group for group in response.groups}
    states = {
        "simple": ("", "Empty"),
        "stable": ("consumer", "Stable"),
        "connect": ("connect", "Stable"),
        "waiting": ("consumer", "CompletingRebalance"),
    }
    assert found == {
        name: ListedGroup(
            name,
            kind,
            state if version >= 4 else "",
            "classic" if version >= 5 else "",
        )
        for name, (kind, state) in states.items()
    }


@pytest.mark.parametrize(
    ("states", "names"),
    [
        (["Stable"], {"stable", "connect"}),
        (["sTABLE", " empty "], {"stable", "connect", "simple"}),
        (["Dead"], set()),
        (["nonsense"], set()),
        ([], {"simple", "stable", "connect", "waiting"}),
    ],
)
def test_states_are_filtered_without_regard_to_case(
    node: GroupNode, states: list[str], names: set[str]
) -> None:
    assert listed(node, states_filter=states) == names


def test_types_are_filtered_without_regard_to_case(node: GroupNode) -> None:
    everything = listed(node)
    assert listed(node, types_filter=["Classic"]) == everything
    assert listed(node, types_filter=["consumer", "CLASSIC"]) == everything
    assert listed(node, types_filter=["consumer"]) == set()
    assert listed(node, types_filter=["nonsense"]) == set()
    assert listed(node, types_filter=["classic"], states_filter=["empty"]) == {"simple"}


def test_each_broker_lists_its_own() -> None:
    node = GroupNode(racks=(None, None, None))
    for name in "abcdefgh":
        for broker in (1, 2, 3):
            node.ask(join_request(name), broker=broker)
    lists = [
        {group.group_id for group in node.ask(ListGroupsRequest(), broker=b).groups}
        for b in (1, 2, 3)
    ]
    assert sorted(name for names in lists for name in names) == list("abcdefgh")


def test_there_may_be_nothing_to_list() -> None:
    assert GroupNode(offsets_topic=False).ask(ListGroupsRequest()) == ListGroupsResponse()


def test_a_partition_that_loads_spoils_the_list(node: GroupNode) -> None:
    """Half a list would be taken for the whole."""
    node.shard("stable").loading = True
    response = node.ask(ListGroupsRequest())
    assert (response.error_code, response.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])


def test_streams_groups_that_are_not_ready_are_filtered_with_an_underscore() -> None:
    node = StreamsNode()
    node.joins("g", "a", topology=topology("missing"))
    for state, found in (("not_ready", ["g"]), ("NOT_READY", ["g"]), ("NotReady", [])):
        answer = node.ask(ListGroupsRequest(states_filter=[state]), 5)
        assert [each.group_id for each in answer.groups] == found
    assert [each.group_state for each in node.ask(ListGroupsRequest(), 5).groups] == ["NotReady"]
