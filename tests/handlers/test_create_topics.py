"""CreateTopics: created topics, refusals, and the answer."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from mockbroker_protocol.types import ZERO_UUID
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    return nodes(3)


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name,
        partitions,
        factor,
        [CreatableReplicaAssignment(n, ids) for n, ids in (assignments or {}).items()],
        [CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()],
    )


def create(
    node: Node, *topics: CreatableTopic, version: int = 7, **fields: object
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(list(topics), **{"timeout_ms": 1000, **fields})  # type: ignore[arg-type]
    results: list[CreatableTopicResult] = ask(
        node, ApiKey.CREATE_TOPICS, request, version, broker=2
    ).topics
    return results


@pytest.mark.covers("S31")
@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_at_any_broker(node, version):
    (result,) = create(node, topic("t", 2, 3, min_insync_replicas="2"), version=version)
    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    stored = node.cluster.topics["t"]
    assert [len(p.replicas) for p in stored.partitions] == [3, 3]
    assert stored.configs.min_insync_replicas == 2
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 3)
    if version >= 7:
        assert result.topic_id == stored.topic_id


def test_the_answer_tells_every_config_with_its_source(node):
    (result,) = create(node, topic("t", cleanup_policy="compact"))
    assert result.configs is not None
    told = {c.name: (c.value, c.config_source) for c in result.configs}
    assert len(told) == 33
    assert list(told) == sorted(told)
    assert told["cleanup.policy"] == ("compact", 1)
    assert told["retention.ms"] == ("604800000", 5)
    assert told["min.insync.replicas"] == ("1", 3)
    assert not any(c.read_only or c.is_sensitive for c in result.configs)


def test_minus_one_stands_for_the_defaults():
    node = nodes(3, num_partitions="4", default_replication_factor="2")
    (result,) = create(node, topic("t", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


@pytest.mark.covers("S35")
def test_replicas_assigned_by_hand(node):
    create(node, topic("t", -1, -1, {1: [2, 3], 0: [3, 1]}))
    assert [p.replicas for p in node.cluster.topics["t"].partitions] == [[3, 1], [2, 3]]


def test_validating_answers_the_same_and_creates_nothing(node):
    (result,) = create(node, topic("t", 2, 2), validate_only=True)
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)
    assert result.configs
    assert node.cluster.topics == {}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("th_ere.x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", bogus="1"), ErrorCode.INVALID_CONFIG),
        (topic("t", retention_ms="never"), ErrorCode.INVALID_CONFIG),
        (topic("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (topic("t", 1, -1, {0: [1]}), ErrorCode.INVALID_REQUEST),
        (topic("t", -1, 1, {0: [1]}), ErrorCode.INVALID_REQUEST),
        (topic("t", -1, -1, {1: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, {0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, {0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, {0: [7]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", -1, -1, {0: [1], 1: [1, 2]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_each_refusal_has_its_code_and_a_message_and_creates_nothing(node, asked, error):
    for name in ("there", "th.ere_x"):
        node.cluster.create_topic(name)
    (result,) = create(node, asked)
    assert result.error_code == error
    assert result.error_message
    assert (result.num_partitions, result.replication_factor) == (-1, -1)
    assert (result.topic_id, result.configs) == (ZERO_UUID, [])
    assert len(node.cluster.topics) == 2


def test_one_refused_topic_does_not_keep_the_others_back(node):
    results = create(node, topic("a"), topic("b", 0), topic("c"))
    assert [r.error_code for r in results] == [0, ErrorCode.INVALID_PARTITIONS, 0]
    assert list(node.cluster.topics) == ["a", "c"]


def test_a_name_that_stands_twice_is_answered_once(node):
    results = create(node, topic("t"), topic("u"), topic("t", 2))
    assert [(r.name, r.error_code) for r in results] == [
        ("u", ErrorCode.NONE),
        ("t", ErrorCode.INVALID_REQUEST),
    ]
    assert "t" not in node.cluster.topics


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_done(node, timeout_ms):
    (result,) = create(node, topic("t"), timeout_ms=timeout_ms)
    assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert node.cluster.topics == {}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ([topic("t", 9_999)], ErrorCode.NONE),
        ([topic("t", 10_000)], ErrorCode.POLICY_VIOLATION),
        ([topic("t", 10_001)], ErrorCode.POLICY_VIOLATION),
        ([topic("t", 9_990), topic("u", 20)], ErrorCode.POLICY_VIOLATION),
        ([topic("t", 9_998, retention_ms="1")], ErrorCode.NONE),
        ([topic("t", 9_999, retention_ms="1")], ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_request_is_no_larger_than_the_controllers_batch(node, asked, error):
    results = create(node, *asked, validate_only=True)
    assert {r.error_code for r in results} == {error}


def test_a_topics_configs_given_twice_are_those_given_last(node):
    asked = topic("t")
    asked.configs = [CreatableTopicConfig("retention.ms", v) for v in ("1", "2")]
    create(node, asked)
    assert node.cluster.topics["t"].configs.retention_ms == 2
