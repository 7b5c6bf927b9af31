"""Members of any group, found by a glob; the age of an offset."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.group import commit_timestamp_ms, members_matching, required_members
from mockbroker.core.groups.offsets import OffsetAndMetadata
from tests.support.group_node import GroupNode, join_request


@pytest.fixture
def node() -> GroupNode:
    """A group with a static member of instance "till-1" and a dynamic one of client "web"."""
    node = GroupNode()
    node.ask(join_request(group_instance_id="till-1"))
    given = node.ask(join_request(), client_id="web").member_id
    node.send(join_request("g", given), client_id="web")
    return node


def found(node: GroupNode, pattern: str) -> list[str]:
    """The client ids of the members that a glob matches."""
    group = node.shard().groups["g"]
    return [group.members[member_id].client_id for member_id in members_matching(group, pattern)]


def test_a_glob_matches_member_ids_client_ids_and_instance_ids(node: GroupNode) -> None:
    assert found(node, "*") == ["tester", "web"]
    assert found(node, "w?b") == ["web"]
    assert found(node, "till-*") == ["tester"]
    by_id = next(iter(node.shard().groups["g"].members))
    assert members_matching(node.shard().groups["g"], by_id) == [by_id]


def test_a_glob_matches_whole_names_and_minds_case(node: GroupNode) -> None:
    assert found(node, "we") == []
    assert found(node, "WEB") == []


def test_a_member_without_an_instance_id_does_not_match_an_empty_glob(node: GroupNode) -> None:
    assert found(node, "") == []


def test_a_glob_of_nobody_is_an_error_that_names_who_is_there(node: GroupNode) -> None:
    group = node.shard().groups["g"]
    assert required_members(group, "web") == members_matching(group, "web")
    with pytest.raises(ActionError, match="group 'g' has no member 'nobody'") as refused:
        required_members(group, "nobody")
    assert all(member_id in str(refused.value) for member_id in group.members)


def test_an_empty_group_has_none_to_name() -> None:
    node = GroupNode()
    group = node.shard().classic.create_simple_group("g", node.now_ms)
    with pytest.raises(ActionError, match="it has: none"):
        required_members(group, "*")


def test_the_age_of_an_offset_counts_from_its_commit() -> None:
    assert commit_timestamp_ms(OffsetAndMetadata(7, commit_timestamp_ms=1234)) == 1234
