"""JoinGroup: the checks before those of the group, and differences between versions."""

from __future__ import annotations

import re

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.join_group import JoinGroupResponse
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    join_request,
    subscription,
    sync_request,
)

VERSIONS = range(10)


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def assert_refused(
    response: JoinGroupResponse, error: ErrorCode, member_id: str, version: int = 9
) -> None:
    """An error and otherwise nothing: generation -1, no protocol, no leader, no members."""
    assert response == JoinGroupResponse(
        error_code=error,
        generation_id=-1,
        protocol_type=None,
        protocol_name="" if version < 7 else None,
        leader="",
        member_id=member_id,
        members=[],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_needs_a_name(node: GroupNode, version: int) -> None:
    """24 comes before 26, and names the member that asked."""
    request = join_request("", "m", session_timeout_ms=1)
    assert_refused(node.ask(request, version), ErrorCode.INVALID_GROUP_ID, "m", version)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001, -1])
def test_the_session_timeout_lies_within_the_brokers_bounds(
    node: GroupNode, timeout_ms: int
) -> None:
    request = join_request("g", "m", session_timeout_ms=timeout_ms)
    assert_refused(node.ask(request), ErrorCode.INVALID_SESSION_TIMEOUT, "m")
    for allowed in (6_000, 1_800_000):
        response = node.ask(join_request("g", session_timeout_ms=allowed))
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_the_bounds_are_configurable() -> None:
    node = GroupNode(configs={"group.min.session.timeout.ms": "100"})
    response = node.ask(join_request(session_timeout_ms=100))
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_another_broker_is_not_the_coordinator() -> None:
    node = GroupNode(racks=(None, None))
    leader = node.cluster.partition(
        "__consumer_offsets", node.cluster.find_coordinator_partition("g")
    )
    assert leader is not None
    other = 3 - leader.leader_id
    assert_refused(node.ask(join_request(), broker=other), ErrorCode.NOT_COORDINATOR, "")


def test_a_loading_coordinator_says_so(node: GroupNode) -> None:
    node.shard().loading = True
    assert_refused(node.ask(join_request()), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "")


def test_a_member_of_a_group_that_is_not_there_is_unknown(node: GroupNode) -> None:
    assert_refused(node.ask(join_request("g", "m")), ErrorCode.UNKNOWN_MEMBER_ID, "m")
    assert "g" not in node.shard().groups


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_in_each_version(node: GroupNode, version: int) -> None:
    """From v4 by way of a member id; the protocol type since v7; the same group underneath."""
    data = subscription("t")
    request = join_request(protocols={"range": data, "sticky": b"s"})
    response = node.ask(request, version)
    if version >= 4:
        assert_refused(response, ErrorCode.MEMBER_ID_REQUIRED, response.member_id, version)
        request.member_id = response.member_id
        response = node.ask(request, version)
    assert (response.error_code, response.generation_id) == (0, 1)
    assert response.leader == response.member_id
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert response.protocol_name == "range"
    assert not response.skip_assignment
    (line,) = response.members
    assert (line.member_id, line.group_instance_id, line.metadata) == (response.leader, None, data)


def test_before_v1_the_session_timeout_is_the_rebalance_timeout(node: GroupNode) -> None:
    node.ask(join_request(session_timeout_ms=7_000), 0)
    (member,) = node.shard().groups["g"].members.values()
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (7_000, 7_000)


def test_member_ids_are_the_client_id_or_the_instance_id_and_a_uuid(node: GroupNode) -> None:
    uuid = "-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    given = node.ask(join_request(), client_id="consumer-1").member_id
    assert re.fullmatch("consumer-1" + uuid, given)
    given = node.ask(join_request(group_instance_id="inst"), client_id="consumer-1").member_id
    assert re.fullmatch("inst" + uuid, given)
    assert re.fullmatch(uuid, node.ask(join_request("h"), client_id=None).member_id)


def test_followers_get_no_list_and_wait_for_the_last_one(node: GroupNode) -> None:
    (leader,) = node.stable(count=1)
    follower = node.ask(join_request()).member_id
    waiting = node.send(join_request("g", follower))
    assert waiting.parked
    response = node.ask(join_request("g", leader))
    assert [line.member_id for line in response.members] == [leader, follower]
    response = waiting.response
    assert (response.generation_id, response.leader, response.members) == (2, leader, [])


def test_a_round_that_somebody_misses_ends_by_the_clock(node: GroupNode) -> None:
    node.stable(count=2, session_timeout_ms=SESSION_MS)
    late = node.ask(join_request()).member_id
    waiting = node.send(join_request("g", late))
    node.advance(SESSION_MS - 1)
    assert waiting.parked
    node.advance(1)
    assert waiting.response.generation_id == 3


@pytest.mark.parametrize("version", [8, 9])
def test_a_static_leader_returns(node: GroupNode, version: int) -> None:
    """v9: leads and skips the assignment. v8: takes itself for a follower."""
    (leader,) = node.stable(count=1, group_instance_id="i", protocols={"range": b"x"})
    response = node.ask(join_request(group_instance_id="i", protocols={"range": b"x"}), version)
    assert (response.error_code, response.generation_id) == (0, 1)
    assert response.member_id != leader
    if version >= 9:
        assert response.skip_assignment
        assert response.leader == response.member_id
        assert [line.member_id for line in response.members] == [response.member_id]
    else:
        assert not response.skip_assignment
        assert (response.leader, response.members) == (leader, [])
    answer = node.ask(sync_request("g", response.member_id, 1, group_instance_id="i"))
    assert answer.assignment == leader.encode()


def test_a_full_group(node: GroupNode) -> None:
    node = GroupNode(configs={"group.max.size": "1"})
    node.stable(count=1)
    assert_refused(node.ask(join_request()), ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_the_first_join_waits_for_the_configured_delay() -> None:
    node = GroupNode(configs={"group.initial.rebalance.delay.ms": "3000"})
    given = node.ask(join_request()).member_id
    waiting = node.send(join_request("g", given))
    node.advance(2_999)
    assert waiting.parked
    node.advance(1)
    assert waiting.response.generation_id == 1


def test_a_new_group_is_in_the_log_before_its_first_member(node: GroupNode) -> None:
    """Kafka writes an empty group with the answer that gives the member id."""
    node.ask(join_request())
    (record,) = node.log()
    assert record.key == b"\x00\x02\x00\x01g"
    assert record.value is not None
    assert record.value[:2] == b"\x00\x03"


def test_a_subscription_that_cannot_be_read_is_taken_as_it_is(node: GroupNode) -> None:
    """The broker passes it on; reading it is the members' affair."""
    members = node.stable(count=1, protocols={"range": b"\xff"})
    assert node.shard().groups["g"].leader == members[0]
