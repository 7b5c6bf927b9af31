"""ConsumerGroupHeartbeat: invalid requests, and the fields of answers."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.handlers.api_versions import api_versions_response
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.consumer_node import ConsumerNode


@pytest.fixture
def node() -> ConsumerNode:
    return ConsumerNode()


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "fields",
    [
        {"group": ""},
        {"group": " "},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"topic_partitions": None},
        {"epoch": -3},
        {"epoch": -2},
        {"epoch": 1, "member": ""},
        {"epoch": -1, "member": ""},
    ],
)
def test_malformed_requests_are_refused(
    node: ConsumerNode, version: int, fields: dict[str, Any]
) -> None:
    values: dict[str, Any] = {
        "group": "g",
        "member": "m",
        "epoch": 0,
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    values |= fields
    owned = None if values.pop("topic_partitions") is None else {}
    group, member, epoch = (values.pop(name) for name in ("group", "member", "epoch"))
    answer = node.beats(group, member, epoch, owned, version, **values)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert (answer.member_id, answer.assignment) == (None, None)


def test_a_member_that_joins_owns_nothing(node: ConsumerNode) -> None:
    answer = node.beats(
        "g", "m", 0, {"t": [0]}, rebalance_timeout_ms=1, subscribed_topic_names=["t"]
    )
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_clients_draw_their_own_ids_since_version_1(node: ConsumerNode) -> None:
    """KIP-1082: so that a lost answer leaves no second member behind."""
    assert node.joins("g", "").error_code == ErrorCode.INVALID_REQUEST
    first, second = (node.joins("g", "", version=0).member_id for _ in range(2))
    assert first != second
    assert len(first) == 22


def test_unknown_assignors_are_named_with_the_known_ones(node: ConsumerNode) -> None:
    answer = node.joins("g", "m", server_assignor="sticky")
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in answer.error_message


def test_only_the_coordinator_answers() -> None:
    node = ConsumerNode(offsets_topic=False)
    assert node.joins("g", "m").error_code == ErrorCode.NOT_COORDINATOR


def test_a_group_comes_with_its_first_member(node: ConsumerNode) -> None:
    for epoch in (1, -1):
        assert node.beats("g", "m", epoch).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    joined = node.joins("g", "m")
    assert (joined.error_code, joined.error_message) == (0, None)
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("m", 2, 5_000)
    (line,) = joined.assignment.topic_partitions
    assert line.topic_id == node.cluster.topics["t"].topic_id
    assert line.partitions == [0, 1, 2]
    assert node.beats("g", "m", 2).assignment is None
    assert node.leaves("g", "m").member_epoch == -1


def test_who_sent_the_heartbeat_is_noted(node: ConsumerNode) -> None:
    node.joins("g", "m")
    member = node.consumer_group().members["m"]
    assert (member.client_id, member.client_host) == ("tester", "/127.0.0.1")


@pytest.mark.parametrize(("release", "served"), [("4.3", True), ("4.0", True), ("3.6", False)])
def test_the_feature_is_on_where_the_release_has_the_protocol(release: str, served: bool) -> None:
    """group.version 1 came with 4.0."""
    response = api_versions_response(Cluster(seed=7, kafka_version=release), 4)
    levels = {f.name: f.max_version_level for f in response.finalized_features}
    assert levels.get("group.version") == (1 if served else None)
    keys = {k.api_key for k in response.api_keys}
    assert (int(ApiKey.CONSUMER_GROUP_HEARTBEAT) in keys) is served
    assert (int(ApiKey.CONSUMER_GROUP_DESCRIBE) in keys) is served
