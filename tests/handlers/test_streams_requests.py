"""The validity of a StreamsGroupHeartbeat by itself."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.handlers.streams_requests import refusal_of
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import (
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskOffset,
    TopicInfo,
    Topology,
)

TASK = [ResponseTaskIds("0", [0])]


def request(**fields: Any) -> StreamsGroupHeartbeatRequest:
    """A valid join, but for `fields`."""
    valid: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 1,
        "topology": Topology(0, [Subtopology("0", ["t"])]),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    return StreamsGroupHeartbeatRequest(**(valid | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"task_offsets": [TaskOffset()]}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
        ({"warmup_tasks": TASK}, "WarmupTasks are not supported yet."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": TASK}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        (
            {"member_epoch": -3},
            "MemberEpoch is -3, but must be greater than or equal to -2.",
        ),
        (
            {"member_epoch": 1, "standby_tasks": None},
            "If one task-type is non-null, all must be non-null.",
        ),
        ({"member_epoch": 1}, "Topology can only be provided when (re-)joining."),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(
    fields: dict[str, Any], message: str
) -> None:
    refused = refusal_of(request(**fields))
    assert refused is not None
    assert (refused.error, refused.message) == (ErrorCode.INVALID_REQUEST, message)


def test_a_changelog_topic_has_no_count_of_its_own() -> None:
    counted = Subtopology("0", state_changelog_topics=[TopicInfo("c", 3)])
    refused = refusal_of(request(topology=Topology(0, [counted])))
    assert refused is not None
    assert refused.error is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert refused.message == (
        "Changelog topic c must have an undefined partition count, but it is set to 3."
    )


def test_a_valid_request_passes() -> None:
    assert refusal_of(request()) is None
    assert refusal_of(request(member_epoch=3, topology=None)) is None
