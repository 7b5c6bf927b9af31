"""DeleteShareGroupOffsets: the share state of whole topics of an Empty group."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.share_node import ShareNode

E = ErrorCode
NOTHING = "There is no offset information to delete."


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


def results(answer: Any) -> list[tuple[str, int, str | None]]:
    return [(each.topic_name, each.error_code, each.error_message) for each in answer.responses]


def test_the_state_of_a_topic_is_deleted(node: ShareNode) -> None:
    node.alters("g", {"t": {0: 5}})
    assert results(node.forgets("g", "t")) == [("t", 0, None)]
    assert node.noted() == {"initializing": {}, "initialized": {}, "deleting": []}
    (topic,) = node.offsets("g", {"t": [0]}).topics
    assert topic.partitions[0].start_offset == -1


def test_topics_without_state_and_topics_that_do_not_exist_have_errors(node: ShareNode) -> None:
    node.topic("u")
    node.alters("g", {"t": {0: 5}})
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert results(node.forgets("g", "u", "x", "t")) == [
        ("t", 0, None),
        ("u", unknown, NOTHING),
        ("x", unknown, unknown.message),
    ]


def test_groups_that_are_not_empty_or_not_there_are_refused(node: ShareNode) -> None:
    node.stable("m")
    node.member("classic")
    told = {group: node.forgets(group, "t") for group in ("g", "classic", "none", "")}
    assert {group: (each.error_code, each.error_message) for group, each in told.items()} == {
        "g": (E.NON_EMPTY_GROUP, E.NON_EMPTY_GROUP.message),
        "classic": (E.GROUP_ID_NOT_FOUND, "Group classic is not a share group."),
        "none": (E.GROUP_ID_NOT_FOUND, "Group none not found."),
        "": (E.INVALID_GROUP_ID, E.INVALID_GROUP_ID.message),
    }
