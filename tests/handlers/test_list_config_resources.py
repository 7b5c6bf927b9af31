"""ListConfigResources: names by type."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(2)
    node.cluster.create_topic("t")
    node.cluster.configs.groups["g"] = {"consumer.session.timeout.ms": "50000"}
    node.cluster.configs.client_metrics["m"] = {"metrics": "a"}
    return node


def listed(node: Node, *types: int, version: int = 1) -> set[tuple[int, str]]:
    request = ListConfigResourcesRequest(list(types))
    response = ask(node, ApiKey.LIST_CONFIG_RESOURCES, request, version)
    assert response.error_code == ErrorCode.NONE
    return {(r.resource_type, r.resource_name) for r in response.config_resources}


def test_no_type_means_all(node):
    assert listed(node) == {
        (2, "t"),
        (4, "1"),
        (4, "2"),
        (8, "1"),
        (8, "2"),
        (16, "m"),
        (32, "g"),
    }


def test_types_choose(node):
    assert listed(node, 2, 32, 2) == {(2, "t"), (32, "g")}


def test_version_0_knows_metrics_subscriptions_only(node):
    assert listed(node, version=0) == {(16, "m")}


@pytest.mark.parametrize("types", [[3], [4, 1]])
def test_an_unknown_type_is_an_unsupported_version(node, types):
    response = ask(node, ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(types))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == []
