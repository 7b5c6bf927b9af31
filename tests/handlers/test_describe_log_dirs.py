"""DescribeLogDirs: the replicas of one broker and their sizes."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node, batch_of


@pytest.fixture
def node() -> Node:
    node = nodes(3)
    node.cluster.create_topic("t", assignments={0: [1, 3], 1: [2, 1], 2: [2, 3]})
    return node


def describe(
    node: Node, topics: dict[str, list[int]] | None, version: int = 5, broker: int = 1
) -> DescribeLogDirsResult:
    wanted = topics and [DescribableLogDirTopic(name, ids) for name, ids in topics.items()]
    request = DescribeLogDirsRequest(wanted)
    (result,) = ask(node, ApiKey.DESCRIBE_LOG_DIRS, request, version, broker=broker).results
    assert isinstance(result, DescribeLogDirsResult)
    assert (result.error_code, result.log_dir) == (0, "/tmp/kafka-logs")
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (t.name, p.partition_index): p.partition_size for t in result.topics for p in t.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_a_broker_tells_the_replicas_it_holds(node, version):
    batch = batch_of(b"value")
    node.produced(batch)
    assert sizes(describe(node, None, version)) == {("t", 0): len(batch), ("t", 1): 0}
    assert set(sizes(describe(node, None, version, broker=2))) == {("t", 1), ("t", 2)}


def test_named_partitions_choose_and_unknown_ones_are_left_out(node):
    assert set(sizes(describe(node, {"t": [1, 2, 9], "none": [0]}))) == {("t", 1)}
    assert describe(node, {"none": [0]}).topics == []


def test_a_topic_named_twice_has_the_partitions_of_both(node):
    """KafkaApis makes one set of all."""
    wanted = [DescribableLogDirTopic("t", [1]), DescribableLogDirTopic("t", [0])]
    (result,) = ask(node, ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(wanted), 5).results
    assert set(sizes(result)) == {("t", 0), ("t", 1)}


def test_memory_has_no_volume(node):
    result = describe(node, None)
    assert (result.total_bytes, result.usable_bytes, result.is_cordoned) == (-1, -1, False)
    assert {p.offset_lag for t in result.topics for p in t.partitions} == {0}
