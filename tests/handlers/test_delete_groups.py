"""DeleteGroups: only Empty groups are deleted, with all their offsets."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from tests.support.group_node import (
    GroupNode,
    commit_request,
    fetch_request,
    join_request,
    leave_request,
)

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def delete(node: GroupNode, *groups: str, version: int = 2) -> list[tuple[str, int]]:
    results = node.ask(DeleteGroupsRequest(groups_names=list(groups)), version).results
    return [(result.group_id, result.error_code) for result in results]


@pytest.mark.parametrize("version", range(3))
def test_each_group_has_its_own_error(node: GroupNode, version: int) -> None:
    node.ask(commit_request({("t", 0): 1}, "simple"))
    node.stable("stable")
    assert delete(node, "simple", "stable", "none", "simple", version=version) == [
        ("simple", E.NONE),
        ("stable", E.NON_EMPTY_GROUP),
        ("none", E.GROUP_ID_NOT_FOUND),
    ]


def test_groups_in_the_middle_of_a_rebalance_are_not_empty(node: GroupNode) -> None:
    node.member("completing")
    node.stable("preparing")
    node.send(join_request("preparing", node.ask(join_request("preparing")).member_id))
    assert delete(node, "completing", "preparing") == [
        ("completing", E.NON_EMPTY_GROUP),
        ("preparing", E.NON_EMPTY_GROUP),
    ]


def test_offsets_and_group_end_in_tombstones(node: GroupNode) -> None:
    (member,) = node.stable()
    node.ask(commit_request({("t", 0): 1, ("t", 2): 1}, "g", member, 1))
    node.ask(leave_request("g", member))
    before = len(node.log())
    assert delete(node, "g") == [("g", E.NONE)]
    records = node.log()[before:]
    assert [record.value for record in records] == [None] * 3
    assert [record.key[:2] for record in records if record.key] == [b"\0\1", b"\0\1", b"\0\2"]
    assert node.ask(fetch_request(None)).groups[0].topics == []
    assert delete(node, "g") == [("g", E.GROUP_ID_NOT_FOUND)]


def test_a_deleted_group_may_be_born_again(node: GroupNode) -> None:
    (member,) = node.stable()
    node.ask(leave_request("g", member))
    delete(node, "g")
    node.stable()
    assert node.shard().groups["g"].generation == 1


def test_another_broker_is_not_the_coordinator() -> None:
    node = GroupNode(racks=(None, None))
    request = DeleteGroupsRequest(groups_names=["g"])
    errors = {node.ask(request, broker=b).results[0].error_code for b in (1, 2)}
    assert errors == {E.NOT_COORDINATOR, E.GROUP_ID_NOT_FOUND}


def test_without_enough_replicas_a_group_is_deleted_and_nobody_is_told() -> None:
    """It is as good as gone; the client hears COORDINATOR_NOT_AVAILABLE in the end."""
    node = GroupNode(racks=(None, None))
    index = node.cluster.find_coordinator_partition("g")
    partition = node.cluster.partition("__consumer_offsets", index)
    assert partition is not None
    broker = partition.leader_id
    node.ask(commit_request({("t", 0): 1}), broker=broker)
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.set_isr([broker])
    request = DeleteGroupsRequest(groups_names=["g"])
    pending = node.send(request, broker=broker)
    node.advance(5000)
    (result,) = pending.response.results
    assert result.error_code == E.COORDINATOR_NOT_AVAILABLE
    assert "g" not in node.shard("g", broker).groups


def test_a_group_is_not_deleted_before_all_that_was_written_is_replicated() -> None:
    """Kafka 4.3: the commit counts later, and nothing was deleted, nor refused for itself."""
    node = GroupNode(racks=(None, None), configs={"offsets.topic.num.partitions": "1"})
    (partition,) = node.cluster.topics["__consumer_offsets"].partitions
    broker = partition.leader_id
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.set_isr([broker])
    node.send(commit_request({("t", 0): 1}), broker=broker)
    pending = node.send(DeleteGroupsRequest(groups_names=["g", "nobody"]), broker=broker)
    node.advance(5000)
    errors = [result.error_code for result in pending.response.results]
    assert errors == [E.COORDINATOR_NOT_AVAILABLE] * 2
    assert "g" in node.shard("g", broker).groups
