"""AlterConfigs: all overrides replaced."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(2)
    node.cluster.create_topic("t", configs={"retention.ms": "5"})
    node.cluster.create_topic("u")
    return node


def wish(kind: int, name: str, **configs: str | None) -> AlterConfigsResource:
    named = [AlterableConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return AlterConfigsResource(kind, name, named)


def alter(
    node: Node, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    request = AlterConfigsRequest(list(resources), validate_only)
    responses: list[AlterConfigsResourceResponse] = ask(
        node, ApiKey.ALTER_CONFIGS, request, version
    ).responses
    return responses


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_named_is_dropped(node, version):
    (response,) = alter(node, wish(2, "t", segment_ms="7"), version=version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.resource_type, response.resource_name) == (2, "t")
    assert node.cluster.topics["t"].configs.overrides == {"segment.ms": "7"}


def test_validating_changes_nothing(node):
    alter(node, wish(2, "t", segment_ms="7"), validate_only=True)
    assert node.cluster.topics["t"].configs.overrides == {"retention.ms": "5"}


def test_a_broker_config(node):
    alter(node, wish(4, "1", log_retention_ms="9"))
    assert node.cluster.configs.dynamic_broker == {1: {"log.retention.ms": "9"}}
    alter(node, wish(4, "1"))
    assert node.cluster.configs.dynamic_broker == {}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (wish(2, "none", segment_ms="7"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wish(2, "", segment_ms="7"), ErrorCode.INVALID_REQUEST),
        (wish(2, "t", bogus="7"), ErrorCode.INVALID_CONFIG),
        (wish(2, "t", segment_ms="x"), ErrorCode.INVALID_CONFIG),
        (wish(2, "t", segment_ms=None), ErrorCode.INVALID_REQUEST),
        (wish(4, "1", node_id="7"), ErrorCode.INVALID_REQUEST),
        (wish(4, "2", num_io_threads="8"), ErrorCode.INVALID_REQUEST),
        (wish(4, "", num_io_threads="9"), ErrorCode.INVALID_CONFIG),
        (wish(8, "1", root="INFO"), ErrorCode.INVALID_REQUEST),
        (wish(1, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_each_refusal_has_its_code_and_a_message(node, asked, error):
    (response,) = alter(node, asked)
    assert response.error_code == error
    assert response.error_message
    assert node.cluster.topics["t"].configs.overrides == {"retention.ms": "5"}


def test_resources_and_configs_stand_once_in_a_request(node):
    twice = AlterConfigsResource(2, "u", [AlterableConfig("segment.ms", "7")] * 2)
    responses = alter(node, wish(2, "t"), twice, wish(2, "t", segment_ms="7"))
    assert [r.error_code for r in responses] == [ErrorCode.INVALID_REQUEST] * 3
    assert node.cluster.topics["t"].configs.overrides == {"retention.ms": "5"}
