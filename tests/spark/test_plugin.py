"""The fixtures from outside: what pytest says when Spark cannot run here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

USER_TEST = """
def test_of_a_user(spark):
    raise AssertionError("there is no session to test with")
"""

# So far without Spark: what a run pays that never asks for it.
LOADED = """
import sys

def test_nothing_of_spark_is_loaded():
    heavy = {"pyspark", "py4j", "mockbroker.spark", "mockbroker_fixtures.spark"}
    assert heavy.isdisjoint(sys.modules)
"""


def run_pytest(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_user.py").write_text(text, encoding="utf-8")
    arguments = ["-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    # Other plugins take their time to load.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    arguments += ["-p", "mockbroker_fixtures.plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "test_user.py"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "remedy"),
    [
        ({"MOCKBROKER_SPARK_JARS": "/nowhere"}, "there is no directory /nowhere: --jars-dir"),
        (
            {"JAVA_HOME": "/nowhere"},
            "JAVA_HOME is /nowhere, which has no bin/java: install Java 17",
        ),
    ],
)
def test_the_fixture_spark_fails_with_the_remedy_and_nothing_else(
    tmp_path: Path, environment: dict[str, str], remedy: str
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    done = run_pytest(tmp_path, USER_TEST, **environment)
    assert done.returncode == 1
    assert remedy in done.stdout
    assert "Traceback" not in done.stdout
    assert "there is no session to test with" not in done.stdout


def test_a_run_without_spark_loads_nothing_of_it(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, LOADED)
    assert done.returncode == 0, done.stdout
