"""A module is judged by the tests that mirror its path, and by those of its package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.lint import ROOT
from tests.mutation import mirror


def made(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_a_module_has_the_tests_that_begin_with_its_name(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        *("mockbroker/core/log/replica_log.py", "mockbroker/core/log/segments.py"),
        *("tests/core/log/test_replica_log.py", "tests/core/log/test_replica_log_copies.py"),
        "tests/core/log/test_segments.py",
    )
    assert mirror.own_tests(root, "mockbroker/core/log/replica_log.py") == (
        "tests/core/log/test_replica_log.py",
        "tests/core/log/test_replica_log_copies.py",
    )


def test_the_tests_of_a_module_with_a_longer_name_are_not_a_shorter_ones(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        *("mockbroker/core/groups/expiry.py", "mockbroker/core/groups/expiry_schedule.py"),
        *("tests/core/groups/test_expiry.py", "tests/core/groups/test_expiry_schedule.py"),
    )
    assert mirror.own_tests(root, "mockbroker/core/groups/expiry.py") == (
        "tests/core/groups/test_expiry.py",
    )


def test_a_rule_in_sql_is_judged_by_the_oracle() -> None:
    rule = "mockbroker/pipeline/duck/rules/lost_write.sql"
    assert mirror.own_tests(ROOT, rule) == ("tests/pipeline/test_agreement_duck.py",)


@pytest.mark.parametrize("package", mirror.NEIGHBOURS)
def test_the_further_tests_of_each_package_exist(package: str) -> None:
    tests = mirror.further_tests(ROOT, package)
    assert len(tests) > 5
    assert [each for each in tests if not (ROOT / each.partition("::")[0]).is_file()] == []


def test_quick_tests_come_first() -> None:
    quick, slow = "tests/core/log/test_segments.py", "tests/pipeline/test_agreement_duck.py"
    assert mirror.quickest_first([slow, quick], ROOT) == [quick, slow]
