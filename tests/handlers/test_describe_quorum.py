"""DescribeQuorum: one voter, and the brokers that observe it."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from tests.support.ask import ask, nodes
from tests.support.requests import NOW_MS


def describe(*topics: tuple[str, list[int]], version: int = 2) -> DescribeQuorumResponse:
    request = DescribeQuorumRequest(
        [RequestTopicData(name, [RequestPartitionData(i) for i in ids]) for name, ids in topics]
    )
    response = ask(nodes(3), ApiKey.DESCRIBE_QUORUM, request, version)
    assert isinstance(response, DescribeQuorumResponse)
    assert response.error_code == ErrorCode.NONE
    return response


@pytest.mark.parametrize("version", range(3))
def test_the_metadata_partition_has_a_leader_a_voter_and_observers(version):
    response = describe(("__cluster_metadata", [0]), version=version)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert [observer.replica_id for observer in partition.observers] == [2, 3]
    assert partition.high_watermark == partition.current_voters[0].log_end_offset > 0
    if version >= 1:
        assert partition.observers[0].last_fetch_timestamp == NOW_MS
    if version >= 2:
        assert [n.node_id for n in response.nodes] == [1]


@pytest.mark.parametrize(
    "asked", [("__cluster_metadata", [1]), ("t", [0]), ("__cluster_metadata", [0, 1])]
)
def test_any_other_partition_is_unknown(asked):
    (topic,) = describe(asked).topics
    assert topic.topic_name == asked[0]
    assert {p.error_code for p in topic.partitions} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_nothing_asked_nothing_told():
    response = describe()
    assert (response.topics, response.nodes) == ([], [])
