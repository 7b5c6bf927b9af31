"""SyncGroup: the checks before those of the group, and differences between versions."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.sync_group import SyncGroupResponse
from tests.support.group_node import GroupNode, join_request, sync_request

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_since_v5_the_protocol_must_be_named(node: GroupNode, missing: str) -> None:
    """23 comes even before the group id is looked at."""
    request = sync_request("", "m", 1, **{missing: None})
    assert node.ask(request, 5) == SyncGroupResponse(error_code=E.INCONSISTENT_GROUP_PROTOCOL)
    assert node.ask(request, 4) == SyncGroupResponse(error_code=E.INVALID_GROUP_ID)


def test_a_group_that_is_not_there_has_no_members(node: GroupNode) -> None:
    assert node.ask(sync_request("g", "m", 1)).error_code == E.UNKNOWN_MEMBER_ID


def test_another_broker_is_not_the_coordinator() -> None:
    node = GroupNode(racks=(None, None))
    errors = {node.ask(sync_request("g", "m", 1), broker=b).error_code for b in (1, 2)}
    assert errors == {E.NOT_COORDINATOR, E.UNKNOWN_MEMBER_ID}


def test_a_loading_coordinator_says_so(node: GroupNode) -> None:
    node.shard().loading = True
    assert node.ask(sync_request("g", "m", 1)).error_code == E.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("version", range(6))
def test_each_gets_its_own_part(node: GroupNode, version: int) -> None:
    """The follower waits for the leader; since v5 the answer repeats the protocol."""
    leader = node.stable(count=1)[0]
    follower = node.member()
    node.send(join_request("g", leader))
    waiting = node.send(sync_request("g", follower, 2), version)
    assert waiting.parked
    parts = {leader: b"one", follower: b"two"}
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    answer = node.ask(sync_request("g", leader, 2, parts), version)
    assert answer == SyncGroupResponse(assignment=b"one", **named)
    assert waiting.response == SyncGroupResponse(assignment=b"two", **named)
    again = node.ask(sync_request("g", follower, 2), version)
    assert again.assignment == b"two"


def test_errors_carry_no_protocol_and_no_assignment(node: GroupNode) -> None:
    (member,) = node.stable()
    response = node.ask(sync_request("g", member, 9))
    assert response == SyncGroupResponse(error_code=E.ILLEGAL_GENERATION)
    response = node.ask(sync_request("g", member, 1, protocol_name="sticky"))
    assert response == SyncGroupResponse(error_code=E.INCONSISTENT_GROUP_PROTOCOL)


def test_without_enough_replicas_the_assignment_is_refused_and_the_round_starts_over() -> None:
    """The group's record is not replicated in time: 15 for everybody who waits."""
    node = GroupNode(racks=(None, None))
    broker = _coordinator(node, "g")
    given = node.ask(join_request(), broker=broker).member_id
    node.ask(join_request("g", given), broker=broker)
    partition = node.shard("g", broker).partition
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.set_isr([broker])
    pending = node.send(sync_request("g", given, 1, {given: b"x"}), broker=broker)
    node.advance(5000)
    assert pending.response.error_code == E.COORDINATOR_NOT_AVAILABLE
    partition.set_isr([1, 2])
    response = node.ask(join_request("g", given), broker=broker)
    assert (response.error_code, response.generation_id) == (0, 2)


def _coordinator(node: GroupNode, group: str) -> int:
    partition = node.cluster.partition(
        "__consumer_offsets", node.cluster.find_coordinator_partition(group)
    )
    assert partition is not None
    return partition.leader_id
