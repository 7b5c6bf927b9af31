"""DescribeConfigs: resources, authorization, and the described fields."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(2)
    node.cluster.create_topic("t", configs={"retention.ms": "5"})
    return node


def describe(
    node: Node,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    broker: int = 1,
    **fields: bool,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(kind, name, keys)
    request = DescribeConfigsRequest([resource], **fields)
    (result,) = ask(node, ApiKey.DESCRIBE_CONFIGS, request, version, broker=broker).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert isinstance(result, DescribeConfigsResult)
    return result


def config(result: DescribeConfigsResult, name: str) -> DescribeConfigsResourceResult:
    (found,) = (c for c in result.configs if c.name == name)
    return found


@pytest.mark.covers("S37")
@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_value_and_source(node, version):
    found = config(describe(node, ConfigResourceType.TOPIC, "t", version=version), "retention.ms")
    assert (found.value, found.config_source) == ("5", 1)
    assert (found.read_only, found.is_sensitive) == (False, False)
    assert found.config_type == (5 if version >= 3 else 0)


def test_success_has_an_empty_message(node):
    result = describe(node, ConfigResourceType.TOPIC, "t")
    assert (result.error_code, result.error_message, len(result.configs)) == (0, "", 33)


@pytest.mark.parametrize("keys", [None, []])
def test_without_keys_all_configs_are_told(node, keys):
    assert len(describe(node, ConfigResourceType.TOPIC, "t", keys).configs) == 33


def test_keys_choose_and_unknown_ones_are_left_out(node):
    result = describe(node, ConfigResourceType.TOPIC, "t", ["segment.ms", "bogus", "retention.ms"])
    assert {c.name for c in result.configs} == {"segment.ms", "retention.ms"}


@pytest.mark.covers("S304")
def test_synonyms_and_documentation_are_told_when_asked(node):
    plain = config(describe(node, ConfigResourceType.TOPIC, "t"), "max.message.bytes")
    assert (plain.synonyms, plain.documentation) == ([], None)
    result = describe(
        node, ConfigResourceType.TOPIC, "t", include_synonyms=True, include_documentation=True
    )
    full = config(result, "max.message.bytes")
    assert [(s.name, s.value, s.source) for s in full.synonyms] == [
        ("message.max.bytes", "1048588", 5)
    ]
    assert full.documentation


@pytest.mark.covers("S304")
def test_a_broker_describes_itself(node):
    result = describe(node, ConfigResourceType.BROKER, "2", broker=2)
    assert len(result.configs) == 340
    found = config(result, "auto.create.topics.enable")
    assert (found.value, found.config_type, found.read_only) == ("true", 1, True)
    assert config(result, "node.id").value == "2"


def test_the_empty_broker_name_stands_for_the_defaults_of_all(node):
    result = describe(node, ConfigResourceType.BROKER, "")
    assert [(c.name, c.value, c.config_source) for c in result.configs] == [
        ("min.insync.replicas", "1", 3)
    ]


def test_loggers_groups_and_metrics_subscriptions(node):
    loggers = describe(node, ConfigResourceType.BROKER_LOGGER, "1")
    root = config(loggers, "root")
    assert (root.value, root.config_source, root.documentation) == ("INFO", 6, "")
    group = describe(node, ConfigResourceType.GROUP, "g")
    assert config(group, "consumer.session.timeout.ms").value == "45000"
    metrics = describe(node, ConfigResourceType.CLIENT_METRICS, "m")
    assert [c.name for c in metrics.configs] == ["interval.ms", "match", "metrics"]


@pytest.mark.parametrize(
    ("kind", "name", "error", "has_message"),
    [
        (2, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (2, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        (2, "", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        (4, "2", ErrorCode.INVALID_REQUEST, True),
        (4, "x", ErrorCode.INVALID_REQUEST, True),
        (8, "", ErrorCode.INVALID_REQUEST, True),
        (8, "2", ErrorCode.INVALID_REQUEST, True),
        (16, "", ErrorCode.INVALID_REQUEST, True),
        (32, "", ErrorCode.INVALID_REQUEST, True),
        (3, "x", ErrorCode.INVALID_REQUEST, True),
    ],
)
def test_each_refusal_has_its_code(node, kind, name, error, has_message):
    result = describe(node, kind, name)
    assert (result.error_code, result.configs) == (error, [])
    assert bool(result.error_message) is has_message


def test_one_unknown_type_fails_the_whole_request(node):
    resources = [DescribeConfigsResource(2, "t", None), DescribeConfigsResource(7, "x", None)]
    results = ask(node, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources)).results
    assert {r.error_code for r in results} == {ErrorCode.INVALID_REQUEST}
