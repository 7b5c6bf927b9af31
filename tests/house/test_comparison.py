"""The page of comparison: tests show its rows, its cells have sources, its figures a format."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.house.named_tests import missing


@pytest.fixture
def comparison(generator: Callable[[str], ModuleType]) -> ModuleType:
    return generator("comparison")


def test_each_row_names_tests_that_exist(comparison: ModuleType) -> None:
    rows = comparison.data()["rows"]
    assert all(row["tests"] for row in rows)
    assert missing(test for row in rows for test in row["tests"]) == []


def test_each_cell_of_another_has_a_source_of_a_fixed_version(comparison: ModuleType) -> None:
    found = comparison.data()
    sources = {each["id"]: each["url"] for each in found["sources"]}
    assert all(re.search(r"/[0-9a-f]{40}/", url) for url in sources.values())
    used = set()
    for row in found["rows"]:
        for other in found["others"]:
            text, source = row[other["id"]]
            assert bool(text) == bool(source), (row["feature"], other["id"])
            used |= {source} - {""}
    assert used == sources.keys()


def test_figures_come_from_the_format_of_the_bench(comparison: ModuleType) -> None:
    """The committed page has none: no page shows results of a run."""
    figures = {"mockbroker": [0.2, 0.3, 0.4], "real": [3.0], "kfake": []}
    results = {
        "scale": "quick",
        "measures": {
            "start": {"title": "start", "better": "lower", "figures": figures},
            "other": {"title": "other", "better": "lower", "figures": {"mockbroker": []}},
        },
    }
    text = comparison.page(results)
    assert "| start | 0.3 | 3 | – | – |" in text
    assert "other" not in re.findall(r"^\| (\w+) \|", text, re.MULTILINE)
    assert "make bench" in comparison.page()
    assert "0.3" not in comparison.page()
