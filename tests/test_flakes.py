"""What fails in one run and passes in another is found by repetition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.lint import ROOT

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


def test_a_test_that_fails_once_in_a_while_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: none here\n")
    command = [sys.executable, "-m", "tests.flakes", "--runs", "3", "--workers", "1", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1, done.stderr
    assert "  test_flaky::test_it_fails_the_second_time: assert 1 != 1" in done.stdout.splitlines()
    *_, failed, total = done.stdout.splitlines()
    assert failed == "test_flaky::test_it_fails_the_second_time: failed in 1 of 3 runs"
    assert total == "1 of 2 tests failed in 3 runs"
