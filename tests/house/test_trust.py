"""The page "Trust": each promise has tests and a command that exist, each figure its origin."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.house.lint import ROOT
from tests.house.named_tests import missing


@pytest.fixture
def trust(generator: Callable[[str], ModuleType]) -> ModuleType:
    return generator("trust")


def test_each_promise_names_tests_that_exist(trust: ModuleType) -> None:
    rows = trust.data()["promises"]
    assert all(row["tests"] for row in rows)
    assert missing(test for row in rows for test in row["tests"]) == []


def test_each_promise_has_a_command_that_exists(trust: ModuleType) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [row["command"].split() for row in trust.data()["promises"]]
    assert [words for words in commands if words[0] != "make" or words[1] not in targets] == []


def test_each_figure_says_when_and_with_which_version_it_was_measured(trust: ModuleType) -> None:
    for row in trust.data()["promises"]:
        assert isinstance(row["date"], datetime.date)
        assert re.fullmatch(r"\d+\.\d+\.\d+", row["version"])
        assert trust.figure(row).endswith(f" ({row['date']}, {row['version']})")


def test_what_one_may_rely_on_is_all_there(trust: ModuleType) -> None:
    names = {row["name"] for row in trust.data()["promises"]}
    assert names >= {
        "Laws", "Planted bugs", "Hostile bytes", "Greedy clients", "Soak", "Crash safety",
        "Threat model", "Mutation", "Flakes",
    }  # fmt: skip
