"""Answers of a group's coordinator wait until what they tell of is replicated.

The answers below min.insync.replicas are those of Kafka 4.3.1, by measurement.
"""

from __future__ import annotations

import msgspec
import pytest

from mockbroker.core.replication.partition import Partition
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
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from tests.support.txn_node import TV2, TxnNode

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
    node.cluster.lag_follower(OFFSETS, home(node).index, node=follower(node))


def release(node: GroupNode) -> None:
    node.cluster.lag_follower(OFFSETS, home(node).index, node=follower(node), release=True)
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
    node.cluster.hold_high_watermark(OFFSETS, home(node).index, release=True)
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


def stable(node: GroupNode) -> str:
    """The only member of a Stable group; its answers are there at once."""
    member: str = send(node, join_request()).response.member_id
    send(node, join_request("g", member))
    send(node, sync_request("g", member, 1, {member: b"part"}))
    return member


def new_member() -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="new",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )


def beat(node: GroupNode, member: str) -> Pending:
    return send(node, heartbeat_request("g", member, 1))


def test_a_heartbeat_waits_for_what_was_written_before_it(node):
    """Though it writes nothing itself: to Kafka it is a write without records."""
    member = stable(node)
    hold(node)
    send(node, commit_request({("t", 0): 7}, "g", member, 1))
    pending = beat(node, member)
    node.advance(1000)
    assert pending.parked
    release(node)
    assert pending.response.error_code == E.NONE


def test_a_heartbeat_that_fails_does_not_wait(node):
    member = stable(node)
    hold(node)
    send(node, commit_request({("t", 0): 7}, "g", member, 1))
    assert beat(node, "nobody").response.error_code == E.UNKNOWN_MEMBER_ID


def test_a_heartbeat_that_tells_of_a_rebalance_waits(node):
    member = stable(node)
    other = send(node, join_request()).response.member_id
    send(node, join_request("g", other))
    hold(node)
    send(node, commit_request({("t", 0): 7}, "g", member, 1))
    pending = beat(node, member)
    assert pending.parked
    release(node)
    assert pending.response.error_code == E.REBALANCE_IN_PROGRESS


def test_who_waits_for_other_members_waits_no_longer_than_for_followers(node):
    """A JoinGroup that no round answers is given up when an earlier commit is."""
    member = stable(node)
    other = send(node, join_request()).response.member_id
    hold(node)
    send(node, commit_request({("t", 0): 7}, "g", member, 1))
    pending = send(node, join_request("g", other))
    node.advance(4999)
    assert pending.parked
    node.advance(1)
    assert pending.response.error_code == E.COORDINATOR_NOT_AVAILABLE


# ------------------------------------------------------------------------ below min.insync.replicas


def kill_follower(node: GroupNode) -> int:
    """Leave the group's partition with less than min.insync.replicas; the broker that is gone."""
    gone = follower(node)
    home(node).topic.configs.replace({"min.insync.replicas": "2"})
    node.cluster.stop_broker(gone, "unclean")
    assert home(node).under_min_isr
    return gone


def revive(node: GroupNode, broker: int) -> None:
    node.cluster.start_broker(broker)
    node.advance(1000)
    assert not home(node).under_min_isr


def test_a_commit_without_enough_replicas_is_written_refused_and_counts_later(node):
    send(node, commit(7))
    gone = kill_follower(node)
    end_offset = home(node).log_end_offset
    pending = send(node, commit(8))
    assert home(node).log_end_offset == end_offset + 1
    node.advance(4999)
    assert pending.parked
    node.advance(1)
    assert error_of(pending) == E.COORDINATOR_NOT_AVAILABLE
    assert committed(fetch(node, stable=False)) == (E.NONE, 7)
    revive(node, gone)
    assert committed(fetch(node, stable=True)) == (E.NONE, 8)
    node.cluster.move_coordinator("g", gone)
    node.advance(0)
    assert committed(fetch(node, stable=True)) == (E.NONE, 8)


def test_offsets_are_not_stable_without_enough_replicas(node):
    send(node, commit(7))
    kill_follower(node)
    send(node, commit(8))
    pending = fetch(node, stable=True)
    node.advance(5000)
    assert committed(pending) == (E.NOT_COORDINATOR, -1)


def test_with_nothing_left_to_replicate_too_few_replicas_do_not_matter(node):
    member = stable(node)
    send(node, commit_request({("t", 0): 7}, "g", member, 1))
    kill_follower(node)
    assert beat(node, member).response.error_code == E.NONE
    assert committed(fetch(node, stable=True)) == (E.NONE, 7)


@pytest.mark.parametrize("what", ["leave", "delete", "heartbeat", "consumer heartbeat", "offsets"])
def test_who_writes_or_comes_later_is_told_that_the_coordinator_is_not_available(node, what):
    member = stable(node)
    send(node, commit_request({("t", 0): 7}, "g", member, 1))
    if what in ("delete", "offsets"):
        send(node, leave_request("g", member))
    kill_follower(node)
    if what == "heartbeat":
        send(node, commit_request({("t", 0): 8}, "g", member, 1))
    request = {
        "leave": leave_request("g", member),
        "delete": DeleteGroupsRequest(["g"]),
        "heartbeat": heartbeat_request("g", member, 1),
        "consumer heartbeat": msgspec.structs.replace(new_member(), group_id=same_home(node)),
        "offsets": OffsetDeleteRequest(
            "g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
        ),
    }[what]
    pending = send(node, request)
    node.advance(4999)
    assert pending.parked
    node.advance(1)
    answer = pending.response.results[0] if what == "delete" else pending.response
    assert answer.error_code == E.COORDINATOR_NOT_AVAILABLE


def same_home(node: GroupNode) -> str:
    """Another group on the same partition."""
    cluster = node.cluster
    return next(
        name
        for name in (f"g{n}" for n in range(10_000))
        if cluster.find_coordinator_partition(name) == home(node).index
    )


def test_members_join_without_enough_replicas_and_get_no_assignment(node):
    """JoinGroup is answered at once; the leader's SyncGroup is refused, the round starts over."""
    gone = kill_follower(node)
    member = send(node, join_request()).response.member_id
    joined = send(node, join_request("g", member)).response
    assert (joined.error_code, joined.generation_id) == (E.NONE, 1)
    pending = send(node, sync_request("g", member, 1, {member: b"part"}))
    node.advance(5000)
    assert pending.response.error_code == E.COORDINATOR_NOT_AVAILABLE
    revive(node, gone)
    joined = send(node, join_request("g", member)).response
    assert (joined.error_code, joined.generation_id) == (E.NONE, 2)


def test_markers_reach_the_offsets_without_enough_replicas():
    """They are written, and count; the coordinator of the transaction goes on trying."""
    node = TxnNode(racks=(None, None), configs={"transaction.state.log.min.isr": "1"})
    p = node.txn()
    assert p.commit_offset(5, version=5) == E.NONE
    kill_follower(node)
    p.broker = node.coordinator_of(p.id)
    node.settle()
    assert p.end(version=TV2).error_code == E.NONE
    node.settle()
    shard = node.shard("g", home(node).leader_id)
    value = shard.offsets.get("g", "t", 0)
    assert value is not None
    assert value.offset == 5
    assert p.state == "PrepareCommit"


def test_members_of_both_protocols_leave_when_it_is_known(node):
    member = stable(node)
    hold(node)
    pending = send(node, LeaveGroupRequest(group_id="g", members=[MemberIdentity(member)]))
    assert pending.parked
    release(node)
    assert pending.response.error_code == E.NONE
    hold(node)
    pending = send(node, msgspec.structs.replace(new_member(), group_id="g"))
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
    """Whatever the reason, it is NOT_COORDINATOR: consumers before 3.9 retry nothing else."""
    send(node, commit(7))
    hold(node)
    send(node, commit(8))
    pending = fetch(node, stable=True)
    node.advance(5000)
    assert committed(pending) == (E.NOT_COORDINATOR, -1)


def test_an_offset_that_is_lost_with_its_leader_was_told_to_nobody(node):
    send(node, commit(7))
    hold(node)
    send(node, commit(8))
    pending = fetch(node, stable=True)
    node.cluster.stop_broker(home(node).leader_id, "unclean")
    assert committed(pending) == (E.NOT_COORDINATOR, -1)
    assert committed(fetch(node, stable=True)) == (E.NONE, 7)
