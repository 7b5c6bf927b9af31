"""DescribeClientQuotas: the entities that match a filter."""

from __future__ import annotations

import pytest

from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node

EXACT, DEFAULT, SPECIFIED = range(3)


@pytest.fixture
def node() -> Node:
    node = nodes(1)
    for entity in ({"user": "u"}, {"user": "u", "client-id": "c"}, {"client-id": None}):
        node.cluster.quotas.alter(
            entity_of(entity.items()), {"producer_byte_rate": 2.0}, validate_only=False
        )
    return node


def describe(
    node: Node, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest([ComponentData(*c) for c in components], strict)
    response = ask(node, ApiKey.DESCRIBE_CLIENT_QUOTAS, request, version)
    assert isinstance(response, DescribeClientQuotasResponse)
    return response


def entities(response: DescribeClientQuotasResponse) -> list[dict[str, str | None]]:
    assert response.entries is not None
    return [{e.entity_type: e.entity_name for e in entry.entity} for entry in response.entries]


@pytest.mark.parametrize("version", [0, 1])
def test_matching_entities_are_told_with_their_quotas(node, version):
    response = describe(node, ("user", EXACT, "u"), version=version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
    assert entities(response) == [{"user": "u"}, {"client-id": "c", "user": "u"}]
    assert response.entries is not None
    assert [(v.key, v.value) for v in response.entries[0].values] == [("producer_byte_rate", 2.0)]


def test_a_strict_filter_takes_no_other_types(node):
    assert entities(describe(node, ("user", SPECIFIED, None), strict=True)) == [{"user": "u"}]
    assert entities(describe(node, ("client-id", DEFAULT, None))) == [{"client-id": None}]
    assert len(entities(describe(node))) == 3


def test_a_malformed_filter_has_no_entries(node):
    response = describe(node, ("user", EXACT, None))
    assert (response.error_code, response.entries) == (ErrorCode.INVALID_REQUEST, None)
    assert response.error_message
    unknown = describe(node, ("bogus", EXACT, "x"))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION
