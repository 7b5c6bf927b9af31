"""Filters and verdicts on a handmade history."""

from __future__ import annotations

import pytest

from mockbroker.core.journal.entries import CLEARED
from mockbroker.core.journal.events import JournalEvent
from mockbroker.core.journal.filters import EventMatcher, parse_filter
from mockbroker.core.journal.verify import (
    JournalGapError,
    explain,
    parse_expectation,
    verify,
)
from mockbroker.core.validation import ValidationError

NOW_MS = 1_600
HISTORY = [
    JournalEvent(**{"virtual_ms": 1_000 + 100 * seq, "real_ns": seq, "seq": seq, **fields})
    for seq, fields in enumerate(
        [
            {"kind": "request", "api": "Produce", "client_id": "loader-1", "acks": -1}
            | {"targets": (("orders", 0), ("refunds", 3))},
            {"kind": "response", "api": "Produce", "client_id": "loader-1"}
            | {"errors": ("NOT_LEADER_OR_FOLLOWER",), "rules": ("flap",)},
            {"kind": "append", "api": "Produce", "topic": "orders", "partition": 0}
            | {"first_offset": 10, "last_offset": 14, "transactional": True, "producer_id": 7},
            {"kind": "commit", "topic": "orders", "partition": 0, "group": "billing", "offset": 15},
            {"kind": "group", "group": "billing", "state": "Stable", "former": "Empty"},
            {"kind": "response", "api": "Fetch", "message": {"a": [{"b": 1}, {"b": 22}]}},
        ],
        1,
    )
]


def matching(**conditions: object) -> list[int]:
    matcher = EventMatcher(parse_filter(conditions), NOW_MS)
    return [event.seq for event in HISTORY if matcher(event)]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"kind": "append"}, [3]),
        ({"kind": ["append", "commit"]}, [3, 4]),
        ({"api": "produce"}, [1, 2, 3]),
        ({"api": [0, "Fetch"]}, [1, 2, 3, 6]),
        ({"client_id": "loader-*"}, [1, 2]),
        ({"client_id": "/-1$/"}, [1, 2]),
        ({"topic": "orders"}, [1, 3, 4]),
        ({"topic": "refunds", "partition": 3}, [1]),
        ({"topic": "refunds", "partition": 0}, []),
        ({"partition": 0}, [1, 3, 4]),
        ({"offset": 12}, [3]),
        ({"offset": 15}, [4]),
        ({"offset": [10, 15]}, [3, 4]),
        ({"producer_id": 7}, [3]),
        ({"transactional": True}, [3]),
        ({"acks": -1}, [1]),
        ({"group": "bill*", "state": "Stable"}, [5]),
        ({"former": "Empty"}, [5]),
        ({"error": "NOT_LEADER_OR_FOLLOWER"}, [2]),
        ({"error": "any"}, [2]),
        ({"error": "none"}, [6]),
        ({"rule": "fl*"}, [2]),
        ({"where": {"a[].b": 22}}, [6]),
        ({"where": {"a[].b": {"min": 2, "max": 10}}}, []),
        ({"where": {"nothing": 1}}, []),
        ({"after_seq": 4}, [5, 6]),
        ({"within_ms": "150ms"}, [5, 6]),
    ],
    ids=str,
)
def test_conditions_select_events(conditions, expected):
    assert matching(**conditions) == expected


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"topik": "x"}, r"topik: unknown field; did you mean 'topic'\?"),
        ({"kind": "appendix"}, r"kind: unknown kind .appendix.; did you mean 'append'"),
        ({"api": "Prodoce"}, r"api: unknown API .Prodoce.; did you mean 'Produce'"),
        ({"partition": "0"}, "partition: "),
        ({"client_id": "/(/"}, "client_id: .* is no regular expression"),
        ({"within_ms": "soon"}, "within_ms: .* is not a duration"),
    ],
    ids=str,
)
def test_invalid_conditions_are_refused_by_name(conditions, message):
    with pytest.raises(ValidationError, match=message):
        matching(**conditions)


def verdict(data: object, history: list[JournalEvent] = HISTORY):
    return verify(parse_expectation(data), history, NOW_MS)


@pytest.mark.parametrize(
    ("data", "holds"),
    [
        ({"match": {"api": "Produce"}}, True),
        ({"match": {"api": "Produce"}, "exactly": 3}, True),
        ({"match": {"api": "Produce"}, "exactly": 2}, False),
        ({"match": {"api": "Produce"}, "at_least": 4}, False),
        ({"match": {"api": "Produce"}, "at_most": 3}, True),
        ({"match": {"api": "Produce"}, "at_least": 1, "at_most": 2}, False),
        ({"match": {"kind": "deliver"}, "exactly": 0}, True),
        ({"match": {"api": "Produce", "within_ms": 150}, "exactly": 0}, True),
        ({"match": {"api": "Produce", "within_ms": 300}, "exactly": 1}, True),
        ({"in_order": [{"kind": "append", "within_ms": 150}, {"kind": "commit"}]}, False),
        ({"match": {"kind": "append"}, "exactly": 0}, False),
        ({"match": {"api": "Produce"}, "exactly": 1, "after_seq": 2}, True),
        ({"match": {"api": "Produce"}, "within_ms": 200}, True),
        ({"match": {"api": "Produce"}, "within_ms": 199}, False),
        ({"in_order": [{"kind": "append"}, {"kind": "commit"}]}, True),
        ({"in_order": [{"kind": "commit"}, {"kind": "append"}]}, False),
        ({"in_order": [{"kind": "append"}, {"kind": "commit"}], "within_ms": 50}, False),
    ],
    ids=str,
)
def test_verdicts(data, holds):
    assert verdict(data).holds is holds


def test_a_failure_lists_near_misses_with_the_failed_condition():
    missed = verdict({"match": {"kind": "append", "topic": "orders", "partition": 1}})
    assert not missed.holds
    assert [miss.event.seq for miss in missed.near] == [3]
    assert missed.near[0].failed == {"topic/partition": (("orders", 0),)}
    assert missed.misses == {"kind": 5, "topic/partition": 1}
    assert explain(missed).splitlines() == [
        "0 events match, at least 1 were expected",
        "  near   #3 append Produce topic=orders partition=0 offsets=10-14",
        "         but topic/partition was (('orders', 0),)",
    ]


def test_a_failure_without_near_misses_counts_the_first_failed_conditions():
    missed = verdict({"match": {"kind": "deliver"}})
    assert "nothing came near; events failed first on: kind (6)" in explain(missed)


def test_too_many_are_shown():
    text = explain(verdict({"match": {"kind": "append"}, "exactly": 0}))
    assert "1 events match, none were expected" in text
    assert "found  #3 append" in text


def test_a_failed_order_reports_events_before_it():
    text = explain(verdict({"in_order": [{"kind": "commit"}, {"kind": "append"}]}))
    assert "in_order[1] did not happen behind in_order[0], only before it" in text


def test_cleared_entries_are_not_part_of_an_expectation():
    cleared = JournalEvent(
        kind="gap", seq=2, virtual_ms=0, real_ns=0, first_seq=1, last_seq=2, reason=CLEARED
    )
    assert verdict({"match": {"kind": "append"}, "exactly": 1}, [cleared, *HISTORY[2:]]).holds


def test_there_is_no_verdict_over_a_gap():
    gap = JournalEvent(kind="gap", seq=2, virtual_ms=0, real_ns=0, first_seq=1, last_seq=2)
    with pytest.raises(JournalGapError, match="entries 1 to 2 are forgotten"):
        verdict({"match": {"kind": "append"}}, [gap, *HISTORY[2:]])
    assert verdict({"match": {"kind": "append"}, "after_seq": 2}, [gap, *HISTORY[2:]]).holds


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "has match or in_order"),
        ({"match": {}, "exactly": 1, "at_most": 2}, "exactly stands alone"),
        ({"in_order": [{}, {}], "exactly": 1}, "in_order stands alone"),
        ({"in_order": [{}]}, "at least two"),
        ({"match": {"topik": "x"}}, r"match.topik: unknown field; did you mean 'topic'"),
        ({"match": {}, "exactly": -1}, "exactly: "),
    ],
    ids=str,
)
def test_contradictory_expectations_are_refused(data, message):
    with pytest.raises(ValidationError, match=message):
        parse_expectation(data)
