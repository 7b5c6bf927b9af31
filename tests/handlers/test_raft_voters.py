"""AddRaftVoter and RemoveRaftVoter: a quorum of one voter refuses every change."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from mockbroker_protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.support.ask import ask, nodes
from tests.support.requests import Node

DIRECTORY = bytes(range(16))
LISTENERS = [Listener("CONTROLLER", "127.0.0.1", 9)]


@pytest.fixture
def node() -> Node:
    return nodes(2)


def add(node: Node, voter: int = 9, **fields: Any) -> int:
    fields = {"cluster_id": None, "voter_directory_id": DIRECTORY, "listeners": LISTENERS, **fields}
    request = AddRaftVoterRequest(voter_id=voter, timeout_ms=1000, **fields)
    answer = ask(node, ApiKey.ADD_RAFT_VOTER, request)
    assert answer.error_message
    return int(answer.error_code)


def remove(node: Node, voter: int = 9, **fields: Any) -> int:
    fields = {"cluster_id": None, "voter_directory_id": DIRECTORY, **fields}
    answer = ask(node, ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(voter_id=voter, **fields))
    assert answer.error_message
    return int(answer.error_code)


@pytest.mark.parametrize("change", [add, remove])
def test_the_request_has_to_mean_this_cluster_and_name_a_voter(node, change):
    assert change(node, cluster_id="another") == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert change(node, -1) == ErrorCode.INVALID_REQUEST
    assert change(node, voter_directory_id=bytes(16)) == ErrorCode.INVALID_REQUEST


def test_a_new_voter_has_a_listener_for_controllers(node):
    others = [Listener("PLAINTEXT", "127.0.0.1", 9)]
    assert add(node, listeners=others) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("change", [add, remove])
def test_at_kraft_version_0_voters_never_change(node, change):
    assert change(node, cluster_id=node.cluster.cluster_id) == ErrorCode.UNSUPPORTED_VERSION


def test_at_kraft_version_1_nobody_can_be_reached_and_the_only_voter_cannot_go(node):
    node.cluster.features.set_levels({"kraft.version": 1})
    assert add(node, 1) == ErrorCode.DUPLICATE_VOTER
    assert add(node, 2) == ErrorCode.REQUEST_TIMED_OUT
    assert remove(node, 1) == ErrorCode.VOTER_NOT_FOUND
