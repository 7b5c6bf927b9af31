"""DescribeCluster: brokers by listener, and endpoint types."""

from __future__ import annotations

import pytest

from mockbroker.core.security.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tests.support.ask import ask
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    return Node(racks=["a", "b", None])


def describe(node: Node, version: int = 2, listener: str = "PLAINTEXT", **fields: object):
    request = DescribeClusterRequest(**fields)  # type: ignore[arg-type]
    response = ask(node, ApiKey.DESCRIBE_CLUSTER, request, version, listener=listener)
    assert isinstance(response, DescribeClusterResponse)
    return response


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_and_its_brokers(node, version):
    response = describe(node, version)
    assert (response.error_code, response.cluster_id) == (0, node.cluster.cluster_id)
    assert response.controller_id == 1
    assert [(b.broker_id, b.port, b.rack) for b in response.brokers] == [
        (1, 9001, "a"),
        (2, 9002, "b"),
        (3, 9003, None),
    ]
    assert response.cluster_authorized_operations == NOT_ASKED


def test_authorized_operations_when_asked(node):
    response = describe(node, include_cluster_authorized_operations=True)
    assert response.cluster_authorized_operations == CLUSTER_OPERATIONS == 8096


def test_only_brokers_with_the_listener_are_told_and_the_controller_only_among_them(node):
    node.cluster.brokers[2].set_endpoint("INSIDE", "in", 5)
    response = describe(node, listener="INSIDE")
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [(2, "in", 5)]
    assert response.controller_id == -1


def test_fenced_brokers_are_shown_when_asked(node):
    node.cluster.brokers[2].fenced = True
    node.cluster.metadata.changed()
    assert [b.broker_id for b in describe(node).brokers] == [1, 3]
    shown = describe(node, include_fenced_brokers=True).brokers
    assert [(b.broker_id, b.is_fenced) for b in shown] == [(1, False), (2, True), (3, False)]


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (5, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_a_broker_is_no_other_endpoint(node, endpoint_type, error):
    for version in (1, 2):
        response = describe(node, version, endpoint_type=endpoint_type)
        assert (response.error_code, response.brokers) == (error, [])
        assert response.error_message
        assert (response.cluster_id, response.controller_id) == ("", -1)
