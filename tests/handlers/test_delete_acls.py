"""DeleteAcls of very many bindings, as a broker of 4.3.1 answered it (AclControlManager)."""

from __future__ import annotations

import pytest

from mockbroker.core.limits import RESPONSE_ELEMENTS_MAX
from mockbroker.core.security.acls import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.handlers.delete_acls import COMPARED_PER_SLICE
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from tests.support.group_node import GroupNode

TOO_MANY = "Cannot remove more than 10000 acls in a single delete operation."
ALL = DeleteAclsFilter(ResourceType.TOPIC, "t", PatternType.LITERAL, None, None, 1, 1)


def node_with(count: int, **more: str) -> GroupNode:
    """A cluster with so many bindings on a topic."""
    configs = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    node = GroupNode(configs=configs | more)
    node.cluster.acls.add(*(binding(number) for number in range(count)))
    return node


def binding(number: int) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        "t",
        PatternType.LITERAL,
        f"User:{number}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def delete(node: GroupNode, *filters: DeleteAclsFilter) -> DeleteAclsResponse:
    pending = node.send(DeleteAclsRequest([*filters]), 3)
    while pending.parked:
        node.advance(0)
    response: DeleteAclsResponse = pending.response
    return response


def test_ten_thousand_are_deleted_together() -> None:
    node = node_with(10_000)
    (result,) = delete(node, ALL).filter_results
    assert (result.error_code, len(result.matching_acls)) == (0, 10_000)
    assert len(node.cluster.acls) == 0


def test_more_are_not_deleted_together() -> None:
    node = node_with(10_001)
    one = DeleteAclsFilter(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:1", None, 1, 1)
    for result in delete(node, one, ALL).filter_results:
        assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, TOO_MANY)
        assert result.matching_acls == []
    assert len(node.cluster.acls) == 10_001


def test_a_binding_that_two_filters_match_counts_once() -> None:
    node = node_with(6_000)
    first, second = delete(node, ALL, ALL).filter_results
    assert first.matching_acls == second.matching_acls == first.matching_acls[:6_000]
    assert len(node.cluster.acls) == 0


def test_matches_are_limited_however_often_a_filter_comes() -> None:
    """Kafka has no such limit; here a response is made in one piece."""
    node = node_with(10, **{RESPONSE_ELEMENTS_MAX: "50"})
    results = delete(node, *[ALL] * 6).filter_results
    assert {(result.error_code, result.error_message) for result in results} == {
        (
            ErrorCode.INVALID_REQUEST,
            "The filters match more than 50 ACLs (mockbroker.response.elements.max).",
        )
    }
    assert node.cluster.runtime.limits_exceeded == {RESPONSE_ELEMENTS_MAX: 1}
    assert len(node.cluster.acls) == 10
    assert {result.error_code for result in delete(node, *[ALL] * 5).filter_results} == {0}


@pytest.mark.parametrize("filters", [1, 3 * COMPARED_PER_SLICE // 500])
def test_many_filters_are_compared_in_slices(filters: int) -> None:
    node = node_with(500)
    other = DeleteAclsFilter(ResourceType.TOPIC, "other", PatternType.LITERAL, None, None, 1, 1)
    pending = node.send(DeleteAclsRequest([other] * filters), 3)
    assert pending.parked == (filters > 1)
    while pending.parked:
        node.advance(0)
    assert len(pending.response.filter_results) == filters
