"""DescribeShareGroupOffsets: start offsets and lags, of all share partitions or of some."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.ids import ZERO_UUID
from tests.support.share_node import ShareNode


@pytest.fixture
def node() -> ShareNode:
    node = ShareNode()
    node.stable("m")
    return node


def rows(group: Any) -> dict[str, dict[int, int]]:
    """Start offsets by topic and partition."""
    return {
        topic.topic_name: {each.partition_index: each.start_offset for each in topic.partitions}
        for topic in group.topics
    }


def test_partitions_that_nobody_has_read_have_no_start_offset(node: ShareNode) -> None:
    assert rows(node.offsets()) == {"t": {0: -1, 1: -1, 2: -1}}


def test_altered_partitions_have_a_start_offset_and_a_lag(node: ShareNode) -> None:
    node.leaves("g", "m")
    node.alters("g", {"t": {1: 0}})
    assert rows(node.offsets()) == {"t": {0: -1, 1: 0, 2: -1}}
    (topic,) = node.offsets("g", {"t": [1]}).topics
    assert topic.partitions[0].lag == 0
    (old,) = node.offsets("g", {"t": [1]}, version=0).topics
    assert old.partitions[0].lag == -1


def test_a_topic_that_does_not_exist_has_no_offsets_and_no_error(node: ShareNode) -> None:
    described = node.offsets("g", {"x": [0], "t": [2]})
    assert rows(described) == {"t": {2: -1}, "x": {0: -1}}
    assert described.topics[1].topic_id == ZERO_UUID
    assert {each.error_code for topic in described.topics for each in topic.partitions} == {0}


def test_an_unknown_group_has_no_offsets(node: ShareNode) -> None:
    assert (node.offsets("none").topics, node.offsets("none").error_code) == ([], 0)
    assert node.offsets("g", {}).topics == []
