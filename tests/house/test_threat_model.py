"""The threat model: each promise has a test, and each test that it names exists."""

from __future__ import annotations

import re

from tests.house.lint import ROOT
from tests.house.named_tests import missing

PAGE = ROOT / "docs" / "explanation" / "trust.md"
TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


def promises() -> list[tuple[str, list[str]]]:
    """The rows of the tables with a column of tests."""
    text = PAGE.read_text(encoding="utf-8")
    tables = re.findall(r"^\| Promise \| Test \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row.strip("|").split(" | ", 1) for table in tables for row in table.splitlines()]
    return [(promise.strip(), TEST.findall(tests)) for promise, tests in rows]


def test_each_promise_has_tests_that_exist() -> None:
    found = promises()
    assert len(found) > 20
    assert [promise for promise, tests in found if not tests] == []
    assert missing(each for _, tests in found for each in tests) == []
    nothing = "tests/house/test_threat_model.py::test_of_nothing"
    assert missing([nothing]) == [nothing]
