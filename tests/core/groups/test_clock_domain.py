"""The time of all groups, or of one, that is advanced alone: sessions end and offsets expire."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.clock_domain import GroupDomain, GroupsDomain
from mockbroker.handlers.base import ConnectionInfo
from tests.support.group_node import SESSION_MS, GroupNode, commit_request

MINUTE = 60_000


@pytest.fixture
def node() -> GroupNode:
    """Groups "g" and "h", each with a member; offsets expire after ten minutes."""
    node = GroupNode(configs={"offsets.retention.minutes": "10"})
    node.stable("g")
    node.stable("h")
    return node


def members(node: GroupNode, group_id: str) -> int:
    """None are left in an empty group without offsets, which is gone at once."""
    group = node.shard(group_id).groups.get(group_id)
    return 0 if group is None else len(group.members)


def connect(node: GroupNode, group: str) -> None:
    for number, member in enumerate(node.shard(group).classic.all()[group].members):
        connection = ConnectionInfo(number, "127.0.0.1", 50_000)
        node.cluster.member_connections.record(group, member, connection)


def test_the_sessions_of_one_group_end_alone(node: GroupNode) -> None:
    domain = GroupDomain(node.cluster, "g")
    assert domain.deadline_ms() == node.now_ms + SESSION_MS
    domain.jump_to(node.now_ms + SESSION_MS - 1)
    assert (members(node, "g"), members(node, "h")) == (1, 1)
    domain.jump_to(node.now_ms + SESSION_MS)
    assert (members(node, "g"), members(node, "h")) == (0, 1)
    assert domain.now_ms() == node.now_ms + SESSION_MS


def test_the_sessions_of_all_groups_end_together(node: GroupNode) -> None:
    domain = GroupsDomain(node.cluster)
    assert (domain.now_ms(), domain.deadline_ms()) == (node.now_ms, node.now_ms + SESSION_MS)
    domain.jump_to(node.now_ms + SESSION_MS)
    assert (members(node, "g"), members(node, "h")) == (0, 0)
    assert domain.now_ms() == node.now_ms + SESSION_MS


def test_a_session_that_was_extended_for_one_group_is_not_for_the_others(node: GroupNode) -> None:
    for group in ("g", "h"):
        connect(node, group)
    GroupDomain(node.cluster, "g").extend_connected_sessions(MINUTE)
    node.advance(SESSION_MS)
    assert (members(node, "g"), members(node, "h")) == (1, 0)
    node.advance(MINUTE)
    assert members(node, "g") == 0


def test_the_sessions_of_all_groups_are_extended_together(node: GroupNode) -> None:
    for group in ("g", "h"):
        connect(node, group)
    GroupsDomain(node.cluster).extend_connected_sessions(MINUTE)
    node.advance(SESSION_MS)
    assert (members(node, "g"), members(node, "h")) == (1, 1)


def test_the_offsets_of_one_group_expire_in_its_time(node: GroupNode) -> None:
    """At once, without the regular check."""
    node.ask(commit_request({("t", 0): 1}, "one"))
    node.ask(commit_request({("t", 0): 1}, "other"))
    node.advance(MINUTE)
    node.ask(commit_request({("t", 1): 1}, "one"))
    domain = GroupDomain(node.cluster, "one")
    domain.jump_to(domain.now_ms() + 9 * MINUTE)
    offsets = node.shard("one").offsets
    assert offsets.keys_of_group("one") == [("t", 1)]
    assert node.shard("other").offsets.keys_of_group("other") == [("t", 0)]
    domain.jump_to(domain.now_ms() + MINUTE)
    assert "one" not in node.shard("one").groups


def test_what_is_left_in_a_group_expires_that_much_earlier_as_well() -> None:
    """In the regular check, which would else look at it when its time were over."""
    configs = {"offsets.retention.minutes": "10", "offsets.retention.check.interval.ms": "60000"}
    node = GroupNode(configs=configs)
    node.ask(commit_request({("t", 0): 1}, "one"))
    node.advance(2 * MINUTE)
    domain = GroupDomain(node.cluster, "one")
    domain.jump_to(domain.now_ms() + 7 * MINUTE)
    assert list(node.shard("one").groups) == ["one"]
    node.advance(2 * MINUTE)
    assert list(node.shard("one").groups) == []


def test_a_group_that_is_gone_has_a_time_and_no_more(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 1}, "one"))
    domain = GroupDomain(node.cluster, "one")
    domain.jump_to(domain.now_ms() + 10 * MINUTE)
    assert "one" not in node.shard("one").groups
    domain.jump_to(domain.now_ms() + MINUTE)
    domain.extend_connected_sessions(MINUTE)
    assert domain.now_ms() == node.now_ms + 11 * MINUTE
