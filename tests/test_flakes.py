"""What fails in one run and passes in another is found by repetition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.lint import ROOT
from tests.support.bare_pytest import use_only

FLAKY = """
from pathlib import Path

FILE = Path(__file__).with_name("seen")

def test_it_fails_the_second_time():
    times = int(FILE.read_text()) if FILE.exists() else 0
    FILE.write_text(str(times + 1))
    assert times != 1

def test_it_always_passes():
    pass
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch, "mockbroker_fixtures.plugin")


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: some here\n")
    command = [
        *(sys.executable, "-m", "tests.flakes", "--workers", "1"),
        *("--folder", str(directory / "runs"), *options),
        *([] if str(directory) in options else [str(directory / "test_it.py")]),
    ]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_test_that_fails_once_in_a_while_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY)
    done = run(tmp_path, "--runs", "3")
    assert done.returncode == 1, done.stderr
    assert "  test_it::test_it_fails_the_second_time: assert 1 != 1" in done.stdout.splitlines()
    *_, failed, total = done.stdout.splitlines()
    assert failed == "test_it::test_it_fails_the_second_time: failed in 1 of 3 runs"
    assert total == "1 of 2 tests failed in 3 runs"


OTHER = """
def test_it_passes():
    pass
"""


def test_runs_that_were_stopped_go_on_with_what_has_ended(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY)
    none = run(tmp_path, "--resume")
    assert none.returncode != 0
    assert "nothing to resume: " in none.stderr
    run(tmp_path, "--runs", "1")
    done = run(tmp_path, "--runs", "2", "--resume")
    assert done.stdout.startswith("run 2 of 2: 2 tests, 1 failed, ")
    assert "failed in 1 of 2 runs" in done.stdout
    assert run(tmp_path, "--runs", "2", "--resume").stdout == "".join(
        line for line in done.stdout.splitlines(keepends=True) if not line.startswith(("run", "  "))
    )


def test_only_files_that_have_changed_begin_anew(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY)
    (tmp_path / "test_other.py").write_text(OTHER)
    assert run(tmp_path, "--runs", "2", str(tmp_path)).returncode == 1
    (tmp_path / "test_it.py").write_text(FLAKY.replace("times != 1", "times"))
    done = run(tmp_path, "--runs", "3", "--resume", str(tmp_path))
    assert done.returncode == 0, done.stdout
    changed, *runs, total = done.stdout.splitlines()
    assert changed == "1 of 2 files of tests have changed and begin anew"
    assert [line.partition(" tests, ")[0] for line in runs] == [
        "run 1 of 3: 3",
        "run 2 of 3: 2",
        "run 3 of 3: 2",
    ]
    assert total == "0 of 3 tests failed in 3 runs"


def test_the_runs_of_other_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY)
    (tmp_path / "test_other.py").write_text(OTHER)
    run(tmp_path, "--runs", "2", str(tmp_path))
    assert run(tmp_path, "--runs", "3", "--resume").stdout.startswith("run 3 of 3: 2 tests, ")
    done = run(tmp_path, "--runs", "3", "--resume", str(tmp_path))
    assert done.stdout.startswith("run 3 of 3: 1 tests, 0 failed, ")


def test_what_has_no_tests_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(OTHER)
    done = run(tmp_path, str(tmp_path / "test_none.py"))
    assert done.returncode != 0
    told = f"{tmp_path / 'test_none.py'} is no file of tests, and no folder that has some"
    assert done.stderr.strip() == told


SLOW = """
import pytest

@pytest.mark.slow
def test_it_is_slow_and_fails():
    assert False

def test_it_is_quick():
    pass
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "1 of 2 tests failed in 1 runs"),
        (("--marked", "slow"), "1 of 1 tests failed in 1 runs"),
        (("--marked", "not slow"), "0 of 1 tests failed in 1 runs"),
    ],
)
def test_all_tests_are_run_or_those_with_markers(
    tmp_path: Path, options: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "test_it.py").write_text(SLOW)
    done = run(tmp_path, "--runs", "1", *options)
    assert done.stdout.splitlines()[-1] == expected


def test_runs_of_other_markers_do_not_go_on(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SLOW)
    run(tmp_path, "--runs", "1")
    others = run(tmp_path, "--runs", "2", "--resume", "--marked", "slow")
    assert others.returncode != 0
    assert "has runs with other markers, or other stops" in others.stderr


LEAVING = """
def pytest_sessionfinish(session):
    session.exitstatus = 1
"""


def test_a_run_that_fails_without_a_test_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it_passes(): pass\n")
    (tmp_path / "conftest.py").write_text(LEAVING)
    done = run(tmp_path, "--runs", "2")
    assert done.returncode == 1
    assert "  no test, but the run failed: exit code 1: " in done.stdout
    assert "2 runs failed without a test, and do not count" in done.stdout.splitlines()
    for number in (1, 2):
        assert "1 passed" in (tmp_path / "runs" / f"run-{number}" / "output.txt").read_text()
