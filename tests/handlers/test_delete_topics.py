"""DeleteTopics: by name, by id, and by both in one request."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from mockbroker_protocol.types import ZERO_UUID
from tests.support.ask import ask, nodes
from tests.support.requests import Node

UNKNOWN = bytes(15) + b"\x09"


@pytest.fixture
def node() -> Node:
    node = nodes(2)
    for name in ("a", "b"):
        node.cluster.create_topic(name)
    return node


def delete(
    node: Node, *topics: str | bytes | DeleteTopicState, version: int = 6, timeout_ms: int = 1000
) -> list[DeletableTopicResult]:
    """Names as text, ids as bytes."""
    states = [
        DeleteTopicState(name=t)
        if isinstance(t, str)
        else DeleteTopicState(topic_id=t)
        if isinstance(t, bytes)
        else t
        for t in topics
    ]
    request = DeleteTopicsRequest(timeout_ms=timeout_ms)
    if version >= 6:
        request.topics = states
    else:
        request.topic_names = [t.name or "" for t in states]
    results: list[DeletableTopicResult] = ask(
        node, ApiKey.DELETE_TOPICS, request, version
    ).responses
    return results


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(node, version):
    (result,) = delete(node, "a", version=version)
    assert (result.name, result.error_code) == ("a", ErrorCode.NONE)
    assert list(node.cluster.topics) == ["b"]


def test_an_id_deletes_as_well_and_is_told_with_its_name(node):
    topic_id = node.cluster.topics["a"].topic_id
    (result,) = delete(node, topic_id)
    assert (result.name, result.topic_id, result.error_code) == ("a", topic_id, ErrorCode.NONE)
    assert list(node.cluster.topics) == ["b"]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a/b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (UNKNOWN, ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopicState(None, ZERO_UUID), ErrorCode.INVALID_REQUEST),
        (DeleteTopicState("a", UNKNOWN), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_names_no_topic_is_refused(node, topic, error):
    (result,) = delete(node, topic)
    assert result.error_code == error
    assert result.error_message
    assert len(node.cluster.topics) == 2


def test_what_stands_twice_is_refused_once_and_kept(node):
    topic_id = node.cluster.topics["b"].topic_id
    results = delete(node, "a", "a", topic_id, topic_id)
    assert [(r.name, r.topic_id, r.error_code) for r in results] == [
        (None, topic_id, ErrorCode.INVALID_REQUEST),
        ("a", ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]
    assert list(node.cluster.topics) == ["a", "b"]


def test_a_topic_named_and_identified_at_once_is_kept(node):
    topic_id = node.cluster.topics["a"].topic_id
    results = delete(node, "a", topic_id, "b")
    assert [(r.name, r.error_code) for r in results] == [("a", ErrorCode.INVALID_REQUEST), ("b", 0)]
    assert list(node.cluster.topics) == ["a"]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
        (6, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_deletion_can_be_disabled(version, error):
    node = nodes(1, delete_topic_enable="false")
    node.cluster.create_topic("a")
    (result,) = delete(node, "a", version=version)
    assert (result.name, result.error_code) == ("a", error)
    assert "a" in node.cluster.topics


def test_without_time_nothing_is_done(node):
    (result,) = delete(node, "a", timeout_ms=0)
    assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert "a" in node.cluster.topics


@pytest.mark.covers("S45")
def test_internal_topics_may_be_deleted_as_in_kafka(node):
    node.cluster.ensure_internal_topic("__consumer_offsets")
    (result,) = delete(node, "__consumer_offsets")
    assert result.error_code == ErrorCode.NONE
