"""Client quotas: which are taken, and which entities a filter finds."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.quotas.client_quotas import ClientQuotas, FilterComponent, MatchType, entity_of
from mockbroker_protocol import ErrorCode

WINDOWS: dict[str, int] = {
    "quota.window.num": 11,
    "quota.window.size.seconds": 1,
    "controller.quota.window.num": 11,
    "controller.quota.window.size.seconds": 1,
}
USER = entity_of([("user", "u")])
DEFAULT_CLIENT = entity_of([("client-id", None)])
BOTH = entity_of([("user", "u"), ("client-id", "c")])
ADDRESS = entity_of([("ip", "1.2.3.4")])


@pytest.fixture
def quotas() -> ClientQuotas:
    quotas = ClientQuotas(WINDOWS.__getitem__)
    for entity in (USER, DEFAULT_CLIENT, BOTH):
        quotas.alter(entity, {"consumer_byte_rate": 10.0}, validate_only=False)
    quotas.alter(ADDRESS, {"connection_creation_rate": 5.0}, validate_only=False)
    return quotas


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [USER, DEFAULT_CLIENT, BOTH, ADDRESS]),
        ([], True, []),
        ([FilterComponent("user", MatchType.EXACT, "u")], False, [USER, BOTH]),
        ([FilterComponent("user", MatchType.EXACT, "u")], True, [USER]),
        ([FilterComponent("user", MatchType.EXACT, "v")], False, []),
        ([FilterComponent("client-id", MatchType.DEFAULT, None)], True, [DEFAULT_CLIENT]),
        ([FilterComponent("client-id", MatchType.SPECIFIED, None)], False, [DEFAULT_CLIENT, BOTH]),
        ([FilterComponent("ip", MatchType.SPECIFIED, None)], True, [ADDRESS]),
    ],
)
def test_filters_match_types_and_names(quotas, components, strict, found):
    described = quotas.describe(components, strict=strict)
    assert [entity for entity, _ in described] == found


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([FilterComponent("", MatchType.EXACT, "x")], ErrorCode.INVALID_REQUEST),
        ([FilterComponent("bogus", MatchType.EXACT, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([FilterComponent("user", MatchType.EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([FilterComponent("user", MatchType.DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([FilterComponent("user", MatchType.SPECIFIED, "x")], ErrorCode.INVALID_REQUEST),
        ([FilterComponent("user", 9, None)], ErrorCode.INVALID_REQUEST),
        ([FilterComponent("user", MatchType.SPECIFIED, None)] * 2, ErrorCode.INVALID_REQUEST),
        (
            [
                FilterComponent("user", MatchType.SPECIFIED, None),
                FilterComponent("ip", MatchType.SPECIFIED, None),
            ],
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_malformed_filters_are_refused(quotas, components, error):
    with pytest.raises(ApiError) as refused:
        quotas.describe(components, strict=False)
    assert refused.value.error is error


def test_an_entity_without_quotas_is_forgotten(quotas):
    quotas.alter(USER, {"producer_byte_rate": 5.0}, validate_only=False)
    assert dict(quotas.describe([], strict=False))[USER] == {
        "consumer_byte_rate": 10.0,
        "producer_byte_rate": 5.0,
    }
    gone = {"producer_byte_rate": None, "consumer_byte_rate": None}
    quotas.alter(USER, gone, validate_only=True)
    assert USER in dict(quotas.describe([], strict=False))
    quotas.alter(USER, gone, validate_only=False)
    assert USER not in dict(quotas.describe([], strict=False))


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ([], {}),
        ([("bogus", "x")], {}),
        ([("user", "")], {}),
        ([("user", "u"), ("ip", "1.2.3.4")], {}),
        ([("ip", "not an ip")], {}),
        ([("user", "u")], {"bogus": 1.0}),
        ([("user", "u")], {"connection_creation_rate": 1.0}),
        ([("ip", "::1")], {"producer_byte_rate": 1.0}),
        ([("ip", None)], {"connection_creation_rate": 3e9}),
        ([("user", "u")], {"producer_byte_rate": 0.0}),
        ([("user", "u")], {"producer_byte_rate": -1.0}),
        ([("user", "u")], {"producer_byte_rate": 1.5}),
        ([("user", "u")], {"producer_byte_rate": 1e20}),
    ],
)
def test_quotas_that_make_no_sense_are_refused(entity, values):
    with pytest.raises(ApiError) as refused:
        ClientQuotas(WINDOWS.__getitem__).alter(entity_of(entity), values, validate_only=False)
    assert refused.value.error is ErrorCode.INVALID_REQUEST


def test_fractions_are_fine_where_kafka_takes_them():
    quotas = ClientQuotas(WINDOWS.__getitem__)
    values = {"request_percentage": 0.5, "controller_mutation_rate": 0.1}
    quotas.alter(USER, values, validate_only=False)
    quotas.alter(
        entity_of([("ip", "localhost")]), {"connection_creation_rate": 1.0}, validate_only=False
    )
    assert dict(quotas.describe([], strict=False))[USER] == values


def test_of_two_names_of_a_type_the_last_counts():
    assert entity_of([("user", "a"), ("user", "b")]) == (("user", "b"),)
