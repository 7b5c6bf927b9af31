"""IncrementalAlterConfigs: operations on single configs."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.alter import OpType
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(2)
    node.cluster.create_topic("t", configs={"retention.ms": "5"})
    return node


def wish(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(kind, name, [AlterableConfig(*change) for change in changes])


def alter(
    node: Node, *resources: AlterConfigsResource, version: int = 1, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    request = IncrementalAlterConfigsRequest(list(resources), validate_only)
    responses: list[AlterConfigsResourceResponse] = ask(
        node, ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version
    ).responses
    return responses


@pytest.mark.parametrize("version", [0, 1])
def test_operations_apply_to_what_is_there(node, version):
    (response,) = alter(
        node,
        wish(
            2,
            "t",
            ("segment.ms", OpType.SET, "7"),
            ("retention.ms", OpType.DELETE, None),
            ("cleanup.policy", OpType.APPEND, "compact"),
        ),
        version=version,
    )
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert node.cluster.topics["t"].configs.overrides == {
        "segment.ms": "7",
        "cleanup.policy": "delete,compact",
    }


@pytest.mark.parametrize("name", ["retention.ms", ""])
def test_a_null_is_no_value_whatever_the_name(node, name):
    (response,) = alter(node, wish(2, "t", (name, OpType.SET, None)))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == f"Null value not supported for : {name}"


def test_each_resource_is_answered_by_itself(node):
    responses = alter(
        node,
        wish(2, "t", ("segment.ms", OpType.SET, "7")),
        wish(2, "none", ("segment.ms", OpType.SET, "7")),
        wish(32, "g", ("consumer.session.timeout.ms", OpType.SET, "1")),
        wish(4, "", ("log.retention.ms", OpType.SET, "9")),
    )
    assert [(r.resource_type, r.resource_name, r.error_code) for r in responses] == [
        (2, "t", ErrorCode.NONE),
        (2, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (32, "g", ErrorCode.INVALID_CONFIG),
        (4, "", ErrorCode.NONE),
    ]
    assert [bool(r.error_message) for r in responses] == [False, True, True, False]
    assert node.cluster.config("log.retention.ms") == 9


@pytest.mark.covers("S303")
def test_a_read_only_broker_config_is_refused(node):
    (response,) = alter(node, wish(4, "1", ("auto.create.topics.enable", OpType.SET, "false")))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert "auto.create.topics.enable" in (response.error_message or "")


def test_an_unknown_operation_fails_without_words(node):
    (response,) = alter(node, wish(2, "t", ("segment.ms", 7, "1")))
    assert (response.error_code, response.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_a_resource_stands_once_in_a_request(node):
    responses = alter(node, wish(2, "t", ("segment.ms", OpType.SET, "7")), wish(2, "t"))
    assert [r.error_code for r in responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_validating_changes_nothing(node):
    (response,) = alter(node, wish(2, "t", ("segment.ms", OpType.SET, "7")), validate_only=True)
    assert response.error_code == ErrorCode.NONE
    assert node.cluster.topics["t"].configs.overrides == {"retention.ms": "5"}
