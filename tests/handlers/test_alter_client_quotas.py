"""AlterClientQuotas: one answer for each entity."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
    ResponseEntryData,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    return nodes(1)


def entry(entity: dict[str, str | None], *ops: tuple[str, float | None]) -> RequestEntryData:
    return RequestEntryData(
        [RequestEntityData(entity_type, name) for entity_type, name in entity.items()],
        [OpData(key, value or 0.0, value is None) for key, value in ops],
    )


def alter(
    node: Node, *entries: RequestEntryData, version: int = 1, validate_only: bool = False
) -> list[ResponseEntryData]:
    request = AlterClientQuotasRequest(list(entries), validate_only)
    results: list[ResponseEntryData] = ask(
        node, ApiKey.ALTER_CLIENT_QUOTAS, request, version
    ).entries
    return results


def stored(node: Node) -> dict[object, dict[str, float]]:
    return dict(node.cluster.quotas.describe([], strict=False))


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_and_removed(node, version):
    user = {"user": "u", "client-id": None}
    (result,) = alter(
        node,
        entry(user, ("producer_byte_rate", 5.0), ("request_percentage", 0.5)),
        version=version,
    )
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert {e.entity_type: e.entity_name for e in result.entity} == user
    alter(node, entry(user, ("producer_byte_rate", None)), version=version)
    assert list(stored(node).values()) == [{"request_percentage": 0.5}]


def test_a_refusal_has_a_message_and_leaves_others_alone(node):
    bad, good = alter(
        node,
        entry({"user": "u"}, ("bogus", 1.0)),
        entry({"user": "v"}, ("producer_byte_rate", 1.0)),
    )
    assert (bad.error_code, good.error_code) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
    assert bad.error_message
    assert list(stored(node)) == [(("user", "v"),)]


def test_what_stands_twice_is_refused(node):
    quota = ("producer_byte_rate", 1.0)
    results = alter(
        node,
        entry({"user": "u"}, quota),
        entry({"user": "u"}, quota),
        entry({"user": "v"}, quota, quota),
    )
    assert [r.error_code for r in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_validating_changes_nothing(node):
    (result,) = alter(node, entry({"user": "u"}, ("producer_byte_rate", 1.0)), validate_only=True)
    assert result.error_code == ErrorCode.NONE
    assert stored(node) == {}
