"""Groups of a shard are deleted once what was written before is replicated, or not at all."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.deletion import Errors, delete_groups
from mockbroker_protocol import ErrorCode
from tests.support.group_node import GroupNode, commit_request

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    """A commit of group "g" that one of two replicas does not have."""
    node = GroupNode(racks=(None, None), configs={"offsets.topic.num.partitions": "1"})
    (partition,) = node.cluster.topics["__consumer_offsets"].partitions
    node.cluster.move_leader("__consumer_offsets", 0, 1)
    node.advance(0)
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.set_isr([1])
    node.send(commit_request({("t", 0): 1}))
    return node


def deleted(node: GroupNode) -> list[Errors]:
    """What is answered to a deletion of "g" and of a group that is not there."""
    answers: list[Errors] = []
    delete_groups(node.shard(), ["g", "nobody"], answers.append)
    assert answers == []
    return answers


def test_if_nothing_is_replicated_in_time_nothing_is_deleted(node: GroupNode) -> None:
    answers = deleted(node)
    node.advance(5_000)
    assert answers == [{"g": E.COORDINATOR_NOT_AVAILABLE, "nobody": E.COORDINATOR_NOT_AVAILABLE}]
    assert list(node.shard().groups) == ["g"]


def test_a_coordinator_that_moves_meanwhile_deletes_nothing(node: GroupNode) -> None:
    answers = deleted(node)
    node.shard().unload()
    assert answers == [{"g": E.NOT_COORDINATOR, "nobody": E.NOT_COORDINATOR}]


def test_each_group_has_its_own_error_when_all_is_replicated() -> None:
    node = GroupNode()
    node.ask(commit_request({("t", 0): 1}))
    node.stable("used")
    answers: list[Errors] = []
    delete_groups(node.shard(), ["g", "nobody"], answers.append)
    delete_groups(node.shard("used"), ["used"], answers.append)
    assert answers == [
        {"g": E.NONE, "nobody": E.GROUP_ID_NOT_FOUND},
        {"used": E.NON_EMPTY_GROUP},
    ]
