"""AlterShareGroupOffsets: start offsets of an Empty group, which it may create."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.share_node import ShareNode

E = ErrorCode


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


def errors(answer: Any) -> dict[str, dict[int, int]]:
    return {
        topic.topic_name: {each.partition_index: each.error_code for each in topic.partitions}
        for topic in answer.responses
    }


def test_a_group_that_does_not_exist_is_created(node: ShareNode) -> None:
    assert errors(node.alters("g", {"t": {0: 5, 2: 0}})) == {"t": {0: 0, 2: 0}}
    assert node.share_group().state_name == "Empty"
    assert node.noted() == {"initializing": {}, "initialized": {"t": [0, 2]}, "deleting": []}


def test_partitions_and_topics_that_do_not_exist_have_errors(node: ShareNode) -> None:
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    answer = node.alters("g", {"t": {0: 1, 7: 1}, "x": {0: 1}})
    assert errors(answer) == {"x": {0: unknown}, "t": {0: 0, 7: unknown}}
    assert node.noted()["initialized"] == {"t": [0]}


def test_nothing_to_alter_creates_no_group(node: ShareNode) -> None:
    assert errors(node.alters("g", {})) == {}
    assert node.shard().groups == {}


def test_a_group_with_members_is_refused(node: ShareNode) -> None:
    node.stable("m")
    answer = node.alters("g", {"t": {0: 1}})
    assert (answer.error_code, answer.error_message) == (
        E.NON_EMPTY_GROUP,
        E.NON_EMPTY_GROUP.message,
    )


def test_a_group_of_another_type_and_no_group_are_refused(node: ShareNode) -> None:
    node.member("classic")
    answer = node.alters("classic", {"t": {0: 1}})
    assert answer.error_code == E.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group classic is not a share group."
    assert node.alters("", {"t": {0: 1}}).error_code == E.INVALID_GROUP_ID
