"""The classic groups of a shard: how they begin, end and change hands, and what people may do."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import decode_assignment
from tests.support.group_node import (
    GroupNode,
    Pending,
    commit_request,
    heartbeat_request,
    join_request,
    sync_request,
)

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def group_of(node: GroupNode) -> ClassicGroup:
    group = node.shard().classic.get("g")
    assert group is not None
    return group


def rejoin(node: GroupNode, *members: str) -> list[Pending]:
    """All of them join again; the answers of a complete round."""
    joins = [node.send(join_request("g", member)) for member in members]
    assert not any(join.parked for join in joins)
    return joins


def assigned(node: GroupNode, members: list[str]) -> list[dict[str, list[int]]]:
    """Rejoin, let the leader assign nothing to anybody, and read what each member gets."""
    rejoin(node, *members)
    group = group_of(node)
    leader, others = members[0], members[1:]
    requests = [sync_request("g", each, group.generation) for each in others]
    waiting = [node.send(each) for each in requests]
    own = dict.fromkeys(members, b"")
    answers = [node.send(sync_request("g", leader, group.generation, own)), *waiting]
    found = []
    for each in answers:
        data = bytes(each.response.assignment)
        parts = decode_assignment(data).assigned_partitions if data else []
        found.append({part.topic: list(part.partitions) for part in parts})
    return found


def node_of_two(**configs: str) -> GroupNode:
    """Two brokers, of which the first one leads all groups."""
    configs |= {"offsets.topic.num.partitions": "1", "auto.leader.rebalance.enable": "false"}
    node = GroupNode(racks=(None, None), configs=configs)
    node.cluster.move_leader("__consumer_offsets", 0, 1)
    node.advance(0)
    return node


def stop_replication(node: GroupNode) -> None:
    """From now on, too few replicas have what the coordinator writes."""
    (partition,) = node.cluster.topics["__consumer_offsets"].partitions
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.set_isr([1])


def check_refused_in_5_s(node: GroupNode, request: Pending) -> None:
    """After `offsets.commit.timeout.ms`."""
    node.advance(4_999)
    assert request.parked
    node.advance(1)
    assert request.response.error_code == E.COORDINATOR_NOT_AVAILABLE


# -- whole groups ----------------------------------------------------------------------------------


def test_an_unknown_member_does_not_begin_a_group(node: GroupNode) -> None:
    answer = node.ask(join_request("g", "ghost"))
    assert (answer.error_code, answer.member_id) == (E.UNKNOWN_MEMBER_ID, "ghost")
    assert node.shard().groups == {}
    assert node.log() == []


def test_a_first_join_is_refused_if_the_group_is_not_replicated_in_time() -> None:
    node = node_of_two(**{"group.initial.rebalance.delay.ms": "9000"})
    stop_replication(node)
    join = node.send(join_request(group_instance_id="one"))
    check_refused_in_5_s(node, join)


def test_a_join_that_waits_is_refused_if_what_is_before_it_is_not_replicated_in_time() -> None:
    node = node_of_two()
    node.stable()
    stop_replication(node)
    node.send(commit_request({("t", 0): 1}, "other"))
    join = node.send(join_request("g", node.ask(join_request()).member_id))
    check_refused_in_5_s(node, join)


def test_a_sync_that_waits_is_refused_if_what_is_before_it_is_not_replicated_in_time() -> None:
    node = node_of_two()
    leader, follower = node.stable(count=2)
    rejoin(node, leader, follower)
    stop_replication(node)
    node.send(commit_request({("t", 0): 1}, "other"))
    sync = node.send(sync_request("g", follower, group_of(node).generation))
    check_refused_in_5_s(node, sync)


def test_a_group_that_got_no_offset_is_gone_with_the_next_check(node: GroupNode) -> None:
    node.shard("new")
    node.advance(600_000)
    refused = node.ask(commit_request({("t", 0): 1}, "new", metadata="x" * 5000))
    assert refused.topics[0].partitions[0].error_code == E.OFFSET_METADATA_TOO_LARGE
    assert "new" in node.shard("new").groups
    node.advance(600_000)
    assert "new" not in node.shard("new").groups


def test_a_group_begins_with_a_record_and_a_group_of_offsets_without(node: GroupNode) -> None:
    node.ask(join_request())
    assert len(node.log()) == 1
    simple = node.shard().classic.create_simple_group("offsets", node.now_ms)
    assert simple.is_empty()
    assert node.shard().groups["offsets"] is simple
    assert len(node.log()) == 1


def test_members_of_a_displaced_group_join_again(node: GroupNode) -> None:
    """The group has become one of another type: JoinGroup that waits is sent to that one."""
    (member,) = node.stable()
    waiting = node.send(join_request("g", node.ask(join_request()).member_id))
    assert waiting.parked
    group = group_of(node)
    node.shard().classic.unload_upgraded(group)
    assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS
    assert "g" not in node.shard().groups
    assert node.ask(heartbeat_request("g", member, 1)).error_code == E.UNKNOWN_MEMBER_ID


# -- what people and rules may do ------------------------------------------------------------------


def test_a_rebalance_needs_members(node: GroupNode) -> None:
    classic = node.shard().classic
    with pytest.raises(ActionError, match="group 'g' has no members"):
        classic.rebalance(classic.create_simple_group("g", node.now_ms))


def test_a_rebalance_is_heard_with_the_next_heartbeat(node: GroupNode) -> None:
    (member,) = node.stable()
    node.shard().classic.rebalance(group_of(node))
    answer = node.ask(heartbeat_request("g", member, 1))
    assert answer.error_code == E.REBALANCE_IN_PROGRESS


def test_sessions_end_before_their_time_for_the_named_members_alone(node: GroupNode) -> None:
    first, second = node.stable(count=2)
    node.shard().classic.expire(group_of(node), [second])
    assert list(group_of(node).members) == [first]
    generation = group_of(node).generation
    assert node.ask(heartbeat_request("g", second, generation)).error_code == E.UNKNOWN_MEMBER_ID


def test_a_member_that_is_kicked_is_unknown(node: GroupNode) -> None:
    """Static ones as well, by their instance id, as an administrator's LeaveGroup."""
    first = node.ask(join_request(group_instance_id="i")).member_id
    assert group_of(node).members[first].instance_id == "i"
    node.shard().classic.kick(group_of(node), [first])
    assert group_of(node).is_empty()
    assert node.ask(heartbeat_request("g", first, 1)).error_code == E.UNKNOWN_MEMBER_ID


def test_a_static_member_is_fenced_by_another_process(node: GroupNode) -> None:
    former = node.ask(join_request(group_instance_id="i")).member_id
    node.shard().classic.fence_instance(group_of(node), "i")
    (present,) = group_of(node).members
    assert present != former
    assert present.startswith("i-")
    request = heartbeat_request("g", former, 1, group_instance_id="i")
    assert node.ask(request).error_code == E.FENCED_INSTANCE_ID


def test_only_a_static_member_can_be_fenced(node: GroupNode) -> None:
    node.stable()
    with pytest.raises(ActionError, match="group 'g' has no static member 'i'"):
        node.shard().classic.fence_instance(group_of(node), "i")


def test_a_set_assignment_stands_in_the_place_of_the_leaders(node: GroupNode) -> None:
    first, second = node.stable(count=2)
    node.shard().classic.assign(group_of(node), {second: {"t": [2, 0]}})
    assert assigned(node, [first, second]) == [{}, {"t": [2, 0]}]


def test_a_set_assignment_holds_in_every_round_until_it_is_taken_back(node: GroupNode) -> None:
    first, second = node.stable(count=2)
    classic = node.shard().classic
    classic.assign(group_of(node), {"*": {"t": [1]}})
    for _ in range(2):
        assert assigned(node, [first, second]) == [{"t": [1]}, {"t": [1]}]
        classic.rebalance(group_of(node))
    classic.assign(group_of(node), {})
    assert assigned(node, [first, second]) == [{}, {}]


def test_an_assignment_for_nobody_is_refused_and_begins_no_round(node: GroupNode) -> None:
    (member,) = node.stable()
    with pytest.raises(ActionError, match="no member 'ghost'"):
        node.shard().classic.assign(group_of(node), {"ghost": {"t": [0]}})
    assert node.ask(heartbeat_request("g", member, 1)).error_code == E.NONE
