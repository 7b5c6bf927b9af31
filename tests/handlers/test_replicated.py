"""Answers of a group's coordinator wait until what they tell of is replicated."""

from __future__ import annotations

import pytest

from mockbroker.core.partition import Partition
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.group_node import (
    GroupNode,
    Pending,
    commit_request,
    fetch_request,
    join_request,
    sync_request,
)

E = ErrorCode
OFFSETS = "__consumer_offsets"


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(racks=(None, None))


def home(node: GroupNode) -> Partition:
    index = node.cluster.find_coordinator_partition("g")
    return node.cluster.topics[OFFSETS].partitions[index]


def follower(node: GroupNode) -> int:
    return next(n for n in home(node).replicas if n != home(node).leader_id)


def hold(node: GroupNode) -> None:
    node.cluster.lag_follower(OFFSETS, home(node).index, follower(node), hold=True)


def release(node: GroupNode) -> None:
    node.cluster.release_follower(OFFSETS, home(node).index, follower(node))
    node.advance(0)


def send(node: GroupNode, request: object, version: int | None = None) -> Pending:
    return node.send(request, version, broker=home(node).leader_id)


def commit(offset: int) -> object:
    return commit_request({("t", 0): offset})


def error_of(pending: Pending) -> int:
    error: int = pending.response.topics[0].partitions[0].error_code
    return error


@pytest.mark.covers("S52")
def test_a_commit_is_answered_when_the_followers_have_it(node):
    hold(node)
    pending = send(node, commit(7))
    node.advance(1000)
    assert pending.parked
    release(node)
    assert error_of(pending) == E.NONE


def test_without_a_lagging_follower_nothing_waits(node):
    assert error_of(send(node, commit(7))) == E.NONE
    assert home(node)._watchers.keys() == {
        node.cluster.brokers[home(node).leader_id].groups.shard(home(node))
    }


def test_a_held_watermark_holds_answers_as_well(node):
    node.cluster.hold_high_watermark(OFFSETS, home(node).index)
    pending = send(node, commit(7))
    assert pending.parked
    node.cluster.release_high_watermark(OFFSETS, home(node).index)
    assert error_of(pending) == E.NONE


def test_past_the_timeout_the_coordinator_is_not_available(node):
    hold(node)
    pending = send(node, commit(7))
    node.advance(4999)
    assert pending.parked
    node.advance(1)
    assert error_of(pending) == E.COORDINATOR_NOT_AVAILABLE


def test_when_the_leadership_is_lost_the_client_is_to_look_for_the_coordinator(node):
    """What only the dead leader had is lost, and was not acknowledged."""
    send(node, commit(7))
    hold(node)
    pending = send(node, commit(8))
    node.cluster.stop_broker(home(node).leader_id, "unclean")
    assert error_of(pending) == E.NOT_COORDINATOR
    answer = send(node, fetch_request({"t": [0]})).response
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 7


def test_a_round_of_a_group_waits_for_its_record(node):
    """The assignment is handed out when it is safe."""
    member = send(node, join_request()).response.member_id
    send(node, join_request("g", member))
    hold(node)
    pending = send(node, sync_request("g", member, 1, {member: b"part"}))
    assert pending.parked
    release(node)
    assert (pending.response.error_code, pending.response.assignment) == (E.NONE, b"part")


@pytest.mark.parametrize(
    "request_",
    [
        DeleteGroupsRequest(["g"]),
        OffsetDeleteRequest(
            "g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
        ),
    ],
    ids=["DeleteGroups", "OffsetDelete"],
)
def test_deletions_wait_as_well(node, request_):
    send(node, commit(7))
    hold(node)
    pending = send(node, request_)
    assert pending.parked
    node.advance(5000)
    response = pending.response
    error = response.results[0].error_code if hasattr(response, "results") else response.error_code
    assert error == E.COORDINATOR_NOT_AVAILABLE


def test_members_of_both_protocols_leave_when_it_is_known(node):
    member = send(node, join_request()).response.member_id
    send(node, join_request("g", member))
    send(node, sync_request("g", member, 1, {member: b"part"}))
    hold(node)
    pending = send(node, LeaveGroupRequest(group_id="g", members=[MemberIdentity(member)]))
    assert pending.parked
    release(node)
    assert pending.response.error_code == E.NONE
    hold(node)
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    pending = send(node, heartbeat)
    assert pending.parked
    release(node)
    assert pending.response.error_code == E.NONE


def fetch(node: GroupNode, *, stable: bool, version: int | None = None) -> Pending:
    request = fetch_request({"t": [0]}, require_stable=stable)
    return send(node, request, version)


def committed(pending: Pending) -> tuple[int, int]:
    """The group's error, and the offset that was told."""
    (group,) = pending.response.groups
    offset = group.topics[0].partitions[0].committed_offset if group.topics else -1
    return group.error_code, offset


def test_offsets_that_are_asked_for_as_stable_are_told_when_they_are_replicated(node):
    """Also those of a commit that has not been answered itself."""
    send(node, commit(7))
    hold(node)
    send(node, commit(8))
    pending = fetch(node, stable=True)
    assert pending.parked
    release(node)
    assert committed(pending) == (E.NONE, 8)


def test_other_questions_get_the_offsets_that_are_replicated_by_now(node):
    send(node, commit(7))
    hold(node)
    send(node, commit(8))
    assert committed(fetch(node, stable=False)) == (E.NONE, 7)
    release(node)
    assert committed(fetch(node, stable=False)) == (E.NONE, 8)


def test_stable_offsets_that_come_too_late_are_none(node):
    send(node, commit(7))
    hold(node)
    send(node, commit(8))
    pending = fetch(node, stable=True)
    node.advance(5000)
    assert committed(pending) == (E.COORDINATOR_NOT_AVAILABLE, -1)


def test_an_offset_that_is_lost_with_its_leader_was_told_to_nobody(node):
    send(node, commit(7))
    hold(node)
    send(node, commit(8))
    pending = fetch(node, stable=True)
    node.cluster.stop_broker(home(node).leader_id, "unclean")
    assert committed(pending) == (E.NOT_COORDINATOR, -1)
    assert committed(fetch(node, stable=True)) == (E.NONE, 7)
