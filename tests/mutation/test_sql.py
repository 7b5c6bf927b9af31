"""What a mutant of a query is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.sql import swaps

RULES = Path(__file__).resolve().parents[2] / "mockbroker/pipeline/duck/rules"


def mutants(query: str) -> list[str]:
    return [query[: each.start] + each.text + query[each.end :] for each in swaps(query)]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("a <= b", ["a < b"]),
        ("a = 1", ["a <> 1", "a = 2"]),
        ("WHERE NOT EXISTS (x)", ["WHERE EXISTS (x)"]),
        ("a IS NOT NULL AND b", ["a IS NULL AND b", "a IS NOT NULL OR b"]),
        ("SELECT min(x)", ["SELECT max(x)"]),
        ("'bug' AS verdict", ["'report' AS verdict"]),
    ],
)
def test_one_word_or_sign_is_replaced(query: str, wanted: list[str]) -> None:
    assert mutants(query) == wanted


@pytest.mark.parametrize("query", ["-- a = b", "'a = b'", '"a = 1"', "a1", "offset"])
def test_comments_strings_and_names_stay(query: str) -> None:
    assert mutants(query) == []


def test_each_rule_has_mutants_that_differ_from_it() -> None:
    for rule in RULES.glob("*.sql"):
        text = rule.read_text("utf-8")
        found = mutants(text)
        assert len(found) >= 3
        assert text not in found
