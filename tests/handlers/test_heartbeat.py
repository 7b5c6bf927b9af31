"""Heartbeat: each row of its table, as bytes."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.heartbeat import HeartbeatResponse
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    heartbeat_request,
    join_request,
)

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def test_while_the_coordinator_loads_all_is_well(node: GroupNode) -> None:
    node.shard().loading = True
    assert node.ask(heartbeat_request("g", "m", 1)).error_code == E.NONE


@pytest.mark.parametrize("version", range(5))
def test_errors_before_the_group_is_asked(node: GroupNode, version: int) -> None:
    answer = node.ask(heartbeat_request("", "m", 1), version)
    assert answer == HeartbeatResponse(error_code=E.INVALID_GROUP_ID)
    answer = node.ask(heartbeat_request("g", "m", 1), version)
    assert answer == HeartbeatResponse(error_code=E.UNKNOWN_MEMBER_ID)


def test_another_broker_is_not_the_coordinator() -> None:
    node = GroupNode(racks=(None, None))
    errors = {node.ask(heartbeat_request("g", "m", 1), broker=b).error_code for b in (1, 2)}
    assert errors == {E.NOT_COORDINATOR, E.UNKNOWN_MEMBER_ID}


def test_without_consumer_offsets_no_broker_is_the_coordinator(node: GroupNode) -> None:
    node.cluster.delete_topic("__consumer_offsets")
    assert node.ask(heartbeat_request("g", "m", 1)).error_code == E.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(5))
def test_errors_of_the_group(node: GroupNode, version: int) -> None:
    (member,) = node.stable()
    expected = {
        (member, 1): E.NONE,
        (member, 0): E.ILLEGAL_GENERATION,
        (member, 2): E.ILLEGAL_GENERATION,
        ("", 1): E.UNKNOWN_MEMBER_ID,
        ("ghost", 0): E.UNKNOWN_MEMBER_ID,
    }
    for (name, generation), error in expected.items():
        answer = node.ask(heartbeat_request("g", name, generation), version)
        assert answer.error_code == error
    newcomer = node.ask(join_request()).member_id
    node.send(join_request("g", newcomer))
    answer = node.ask(heartbeat_request("g", member, 1), version)
    assert answer.error_code == E.REBALANCE_IN_PROGRESS


def test_a_fenced_instance_is_told_so(node: GroupNode) -> None:
    (member,) = node.stable(group_instance_id="i")
    node.ask(join_request(group_instance_id="i"))
    for version, error in ((3, E.FENCED_INSTANCE_ID), (2, E.UNKNOWN_MEMBER_ID)):
        instance = {"group_instance_id": "i"} if version >= 3 else {}
        answer = node.ask(heartbeat_request("g", member, 1, **instance), version)
        assert answer.error_code == error


def test_a_member_that_only_heartbeats_stays(node: GroupNode) -> None:
    """Neither fetches nor commits: heartbeats alone prove that it lives."""
    (member,) = node.stable()
    for _ in range(4):
        node.advance(SESSION_MS - 1)
        assert node.ask(heartbeat_request("g", member, 1)).error_code == E.NONE
    node.advance(SESSION_MS)
    assert node.ask(heartbeat_request("g", member, 1)).error_code == E.UNKNOWN_MEMBER_ID


def test_heartbeats_leave_the_timers_alone(node: GroupNode) -> None:
    """However often members heartbeat, the cluster has one timer for the group."""
    members = node.stable(count=3)
    before = len(node.cluster.runtime.timers._heap)
    for step in range(100):
        node.now_ms += 10
        node.ask(heartbeat_request("g", members[step % 3], 3))
    assert len(node.cluster.runtime.timers._heap) == before
