"""Extended sessions: during an advance, connected members are waited for from its end."""

from __future__ import annotations

import pytest

from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    heartbeat_request,
    join_request,
    sync_request,
)

HOUR_MS = 3_600_000


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def advance_clock(node: GroupNode, *connected: str) -> None:
    group = node.shard().groups["g"]
    group.extend_deadlines(lambda member: member in connected, HOUR_MS, node.now_ms)


def members(node: GroupNode) -> list[str]:
    return list(node.shard().groups["g"].members)


def test_a_session_that_is_renewed_on_the_way_lasts_as_long_as_one_that_is_not(
    node: GroupNode,
) -> None:
    (member,) = node.stable()
    advance_clock(node, member)
    node.advance(HOUR_MS // 2)
    node.ask(heartbeat_request("g", member, 1))
    node.advance(HOUR_MS // 2 + SESSION_MS - 1)
    assert members(node) == [member]
    node.advance(1)
    assert members(node) == []


def test_a_rebalance_that_begins_on_the_way_waits_for_the_members_that_are_there(
    node: GroupNode,
) -> None:
    there, gone = node.stable(count=2)
    advance_clock(node, there)
    node.advance(HOUR_MS)
    assert members(node) == [there], "the other one's session ended"
    group = node.shard().groups["g"]
    assert group.state.value == "PreparingRebalance"
    node.send(join_request("g", there))
    assert group.state.value == "CompletingRebalance"
    assert gone not in group.members


def test_a_rebalance_under_way_waits_longer(node: GroupNode) -> None:
    first, second = node.stable(count=2)
    newcomer = node.member()
    advance_clock(node, first, second, newcomer)
    node.advance(HOUR_MS)
    assert set(members(node)) == {first, second, newcomer}
    for member in (first, second):
        node.send(join_request("g", member))
    generation = node.shard().groups["g"].generation
    node.ask(sync_request("g", first, generation, {first: b""}))
    assert node.shard().groups["g"].state.value == "Stable"


def test_the_first_rebalance_of_a_group_takes_its_delay_and_no_longer() -> None:
    node = GroupNode(configs={"group.initial.rebalance.delay.ms": "3000"})
    given = node.ask(join_request()).member_id
    waiting = node.send(join_request("g", given))
    advance_clock(node, given)
    node.advance(2_999)
    assert waiting.parked
    node.advance(1)
    assert waiting.response.generation_id == 1


def test_nobody_waits_for_those_who_are_gone(node: GroupNode) -> None:
    node.stable()
    advance_clock(node)
    node.advance(SESSION_MS)
    assert members(node) == []
