"""What tests leave in the temporary directory fails their run, and is removed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.house.lint import ROOT

pytest_plugins = ["pytester"]

CONFTEST = """
from tests.support.leftovers import Leftovers

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Leftovers(), "leftovers")
"""
TESTS = """
import tempfile

def test_it_makes_a_directory(tmp_path):
    print("made", tempfile.mkdtemp(prefix={prefix!r}), tmp_path)

def test_it_makes_none():
    pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(("prefix", "code"), [("mockbroker-audit-", 1), ("java-", 0)])
def test_only_files_of_ours_fail_the_run(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
    prefix: str,
    code: int,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS.format(prefix=prefix))
    result = pytester.runpytest_subprocess("-rP", "-n", workers, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    assert result.ret == code
    [(_, made, kept)] = [line.split() for line in result.outlines if line.startswith("made ")]
    assert Path(made).name.startswith(prefix)
    assert not Path(made).parent.exists()
    assert Path(made).parent.parent == Path(tempfile.gettempdir())
    assert Path(made).parent not in Path(kept).parents
    assert (Path(made).name in result.outlines) == bool(code)
