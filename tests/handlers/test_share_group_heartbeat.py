"""ShareGroupHeartbeat: invalid requests, fenced epochs, and the fields of answers."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.share_node import ShareNode


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


def beaten(node: ShareNode, **fields: Any) -> Any:
    """The answer to a join, with some fields of its own."""
    values: dict[str, Any] = {"group": "g", "member": "m", "epoch": 0, "topics": ("t",)} | fields
    group, member, epoch, topics = (
        values.pop(name) for name in ("group", "member", "epoch", "topics")
    )
    return node.beats(group, member, epoch, *topics, **values)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member": ""}, None),
        ({"member": "m" * 37}, None),
        ({"member": " "}, "MemberId can't be empty."),
        ({"group": ""}, "GroupId can't be empty."),
        ({"group": " "}, "GroupId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"topics": ()}, "SubscribedTopicNames must be set in first request."),
        ({"epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_malformed_requests_are_refused_in_kafkas_words(
    node: ShareNode, fields: dict[str, Any], message: str | None
) -> None:
    answer = beaten(node, **fields)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert (answer.member_id, answer.assignment) == (None, None)


def test_only_a_join_creates_a_group(node: ShareNode) -> None:
    told = {each: beaten(node, epoch=each, topics=()) for each in (1, -1)}
    assert {each.error_code for each in told.values()} == {ErrorCode.GROUP_ID_NOT_FOUND}
    assert told[1].error_message == "Share group g not found."
    assert told[-1].error_message == "Group g not found."
    assert node.shard().groups == {}


def test_a_group_of_another_type_is_no_share_group(node: ShareNode) -> None:
    node.member("g")
    for epoch in (0, 1, -1):
        answer = beaten(node, epoch=epoch)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.error_message == "Group g is not a share group."


def test_members_with_other_epochs_are_fenced(node: ShareNode) -> None:
    node.stable("m", "n")
    epoch = node.share_group().members["m"].epoch
    ahead, behind = node.beats("g", "m", epoch + 1), node.beats("g", "m", 1)
    assert ahead.error_code == behind.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "has a greater member epoch" in ahead.error_message
    assert "does not match the previous member epoch" in behind.error_message
    previous = node.share_group().members["m"].previous_epoch
    assert node.beats("g", "m", previous).member_epoch == epoch


def test_a_full_request_gets_the_whole_assignment(node: ShareNode) -> None:
    node.stable("m")
    assert node.ticks("g", "m").assignment is None
    epoch = node.share_group().members["m"].epoch
    (line,) = node.beats("g", "m", epoch, "t").assignment.topic_partitions
    assert line.partitions == [0, 1, 2]


def test_the_heartbeat_interval_is_that_of_the_group(node: ShareNode) -> None:
    assert node.joins("g", "m").heartbeat_interval_ms == 5000
    node.cluster.configs.groups["g"] = {"share.heartbeat.interval.ms": "7000"}
    node.cluster.configs.changed()
    assert node.ticks("g", "m").heartbeat_interval_ms == 7000


def test_without_the_feature_there_are_no_share_groups(node: ShareNode) -> None:
    node.stable("m")
    node.cluster.features.set_levels({"share.version": 0})
    error = ErrorCode.UNSUPPORTED_VERSION
    assert node.joins("g", "m").error_code == error
    assert [each.error_code for each in node.describes("g", "h")] == [error, error]
    assert node.offsets().error_code == error
    assert node.alters("g", {"t": {0: 1}}).error_code == error
    assert node.forgets("g", "t").error_code == error


def test_only_the_coordinator_answers() -> None:
    node = ShareNode(offsets_topic=False)
    assert node.joins("g", "m").error_code == ErrorCode.NOT_COORDINATOR
