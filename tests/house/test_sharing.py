"""How `tests/support/sharing.py` shares tests out among the workers."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.bare_pytest import use_only
from tests.support.sharing import DURATIONS, SPREAD_OVER_S, longest_first, unit_of

pytest_plugins = ["pytester"]

PLUGIN = """
    from tests.support import sharing

    def pytest_addoption(parser):
        sharing.add_options(parser)

    def pytest_configure(config):
        config.pluginmanager.register(sharing.Sharing(config))
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A scratch project of three modules; the first tests of two are the group `together`."""
    use_only(monkeypatch)
    pytester.makeconftest(PLUGIN)
    plain = "def test_1(): pass\ndef test_2(): pass"
    grouped = f"import pytest\n@pytest.mark.xdist_group('together')\n{plain}"
    pytester.makepyfile(test_a=plain, test_b=grouped, test_c=grouped)
    return pytester


def test_a_unit_is_a_group_or_a_module_or_a_test_of_a_long_module():
    seconds = {"tests/long.py": SPREAD_OVER_S + 1, "spark": 900.0, "java:tests/j.py": 900.0}
    assert unit_of("tests/a.py", "tests/a.py::test_b[x]", seconds) == "tests/a.py"
    assert unit_of("tests/long.py", "tests/long.py::test_b", seconds) == "tests/long.py::test_b"
    assert unit_of("spark", "tests/long.py::test_b", seconds) == "spark"
    assert unit_of("java:tests/j.py", "tests/j.py::test_b", seconds) == "java:tests/j.py"


def test_the_longest_unit_is_first_and_units_stay_together():
    tests = [
        ("tests/a.py", "tests/a.py::test_1"),
        ("spark", "tests/s.py::test_1"),
        ("tests/a.py", "tests/a.py::test_2"),
        ("tests/new.py", "tests/new.py::test_1"),
        ("tests/long.py", "tests/long.py::test_1"),
        ("tests/long.py", "tests/long.py::test_2"),
    ]
    seconds = {"tests/a.py": 2.0, "spark": 25.0, "tests/long.py": 60.0}
    # A test of the spread module takes half its time; what nobody has measured is thought short.
    assert SPREAD_OVER_S < 60
    assert longest_first(tests, seconds) == [4, 5, 1, 0, 2, 3]
    assert longest_first(tests, seconds | {"spark": 31.0}) == [1, 4, 5, 0, 2, 3]
    assert longest_first(tests, {}) == [0, 2, 4, 5, 1, 3]


def test_modules_and_groups_run_on_one_worker_each(project: pytest.Pytester):
    result = project.runpytest_subprocess(
        "-n2", "--dist=loadscope", "-v", "--durations-report=seconds.json"
    )
    result.assert_outcomes(passed=6)
    ran = [re.fullmatch(r"\[(gw\d)\] .* PASSED (\S+) *", line) for line in result.outlines]
    worker = {match.group(2): match.group(1) for match in ran if match is not None}
    assert len(worker) == 6
    assert worker["test_a.py::test_1"] == worker["test_a.py::test_2"]
    assert worker["test_b.py::test_1"] == worker["test_c.py::test_1"]
    seconds = json.loads((project.path / "seconds.json").read_text())
    assert set(seconds) == {"test_a.py", "test_b.py", "test_c.py", "together"}


@pytest.mark.parametrize("asked", ["nope", "test_a.py::test_nope"])
def test_what_does_not_exist_is_told(project: pytest.Pytester, asked: str):
    result = project.runpytest_subprocess("-n2", "--dist=loadscope", "test_b.py", asked)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: not all of these exist: test_b.py {asked}"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_what_is_recorded_is_of_groups_and_modules_that_there_are():
    gone = [
        whole
        for whole in json.loads(DURATIONS.read_text(encoding="utf-8"))
        if "/" in whole and not (DURATIONS.parents[1] / whole.rpartition(":")[2]).exists()
    ]
    assert gone == []
