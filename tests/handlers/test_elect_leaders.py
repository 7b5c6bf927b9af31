"""ElectLeaders: named partitions, or all that need it."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.partition import NO_LEADER
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def node() -> Node:
    """t-0 is led by its preferred leader, t-1 is not, t-2 by nobody."""
    node = nodes(2)
    topic = node.cluster.create_topic("t", assignments={n: [1, 2] for n in range(3)})
    topic.partitions[1].become_leader(2, 1, [1, 2])
    topic.partitions[2].become_leader(NO_LEADER, 1, [2])
    node.cluster.brokers[1].fenced = True
    node.cluster.metadata.changed()
    return node


def elect(
    node: Node, kind: int, topics: dict[str, list[int]] | None, version: int = 2
) -> ElectLeadersResponse:
    named = None if topics is None else [TopicPartitions(t, ids) for t, ids in topics.items()]
    response = ask(node, ApiKey.ELECT_LEADERS, ElectLeadersRequest(kind, named), version)
    assert isinstance(response, ElectLeadersResponse)
    return response


def errors(response: ElectLeadersResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, p.partition_id): p.error_code
        for topic in response.replica_election_results
        for p in topic.partition_result
    }


@pytest.mark.covers("S308")
@pytest.mark.parametrize("version", range(3))
def test_preferred_leaders_come_back(node, version):
    node.cluster.brokers[1].fenced = False
    response = elect(node, PREFERRED, {"t": [0, 1, 9], "none": [0]}, version)
    assert errors(response) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.NONE,
        ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    messages = [p.error_message for p in response.replica_election_results[0].partition_result]
    assert [bool(message) for message in messages] == [True, False, True]
    assert node.cluster.topics["t"].partitions[1].leader_id == 1


@pytest.mark.parametrize(("kind", "index"), [(PREFERRED, 1), (UNCLEAN, 2)])
def test_a_partition_named_thrice_is_elected_as_often(node, kind, index):
    """In one entry of the topic or in two: Kafka judges all by the state before the request, and
    each of its records raises the epochs.
    """
    node.cluster.brokers[1].fenced = False
    partition = node.cluster.partition("t", index)
    epochs = partition.leader_epoch, partition.partition_epoch
    named = [TopicPartitions("t", [index, index]), TopicPartitions("t", [0, index])]
    response = ask(node, ApiKey.ELECT_LEADERS, ElectLeadersRequest(kind, named), 2)
    told = [
        [(p.partition_id, p.error_code) for p in topic.partition_result]
        for topic in response.replica_election_results
    ]
    needless = ErrorCode.ELECTION_NOT_NEEDED
    assert told == [[(index, 0), (index, 0)], [(0, needless), (index, 0)]]
    partition = node.cluster.partition("t", index)
    assert (partition.leader_epoch, partition.partition_epoch) == (epochs[0] + 3, epochs[1] + 3)
    assert partition.log.epochs.latest == epochs[0] + 3
    again = elect(node, kind, {"t": [index, index]})
    assert {p.error_code for p in again.replica_election_results[0].partition_result} == {needless}


def test_a_dead_preferred_leader_is_not_available(node):
    response = elect(node, PREFERRED, {"t": [1]})
    assert errors(response) == {("t", 1): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


@pytest.mark.covers("S308")
def test_any_leader_for_leaderless_partitions(node):
    response = elect(node, UNCLEAN, {"t": [1, 2]})
    assert errors(response) == {("t", 1): ErrorCode.ELECTION_NOT_NEEDED, ("t", 2): ErrorCode.NONE}
    assert node.cluster.topics["t"].partitions[2].leader_id == 2


@pytest.mark.covers("S49")
def test_without_names_every_partition_that_needs_it_is_told(node):
    node.cluster.brokers[1].fenced = False
    node.cluster.topics["t"].partitions[2].become_leader(2, 2, [1, 2])
    response = elect(node, PREFERRED, None)
    assert errors(response) == {("t", 1): ErrorCode.NONE, ("t", 2): ErrorCode.NONE}
    assert [p.leader_id for p in node.cluster.topics["t"].partitions] == [1, 1, 1]
    again = elect(node, PREFERRED, None)
    assert [(t.topic, t.partition_result) for t in again.replica_election_results] == [("t", [])]


def test_an_unknown_kind_of_election_fails_the_request(node):
    response = elect(node, 5, {"t": [1]})
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert errors(response) == {("t", 1): ErrorCode.INVALID_REQUEST}
    assert elect(node, 5, None).replica_election_results == []
