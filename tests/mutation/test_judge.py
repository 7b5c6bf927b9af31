"""A mutant is killed by a failing test or by the limit of CPU time; the checkout stays as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation import judge

TESTS = "tests/test_half.py"
SOURCE = "half.py"
HALF = "def half(x):\n    return x // 2\n"
TEST = """
from half import half

def test_half():
    assert half(4) == 2
"""
# In a process of its own, as the runner is: pytest starts in its forks.
JUDGE = """
import os
import sys
from pathlib import Path
from tests.mutation import judge
root = Path(sys.argv[1])
copy = judge.Copy(root / "checkout", root / "copy")
judge.preload(copy.root)
reader, writer = os.pipe()
os.write(writer, b"the next mutant")
with copy.changed("half.py", sys.argv[2].replace("|", chr(10))):
    outcome = judge.run(["tests/test_half.py"], 4, 60, root / "output")
assert os.read(reader, 99) == b"the next mutant"
print(outcome.verdict, outcome.failed)
"""
READS_ALL = """
import os

for descriptor in range(3, 64):
    try:
        os.read(descriptor, 99)
    except OSError:
        pass
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "tests").mkdir(parents=True)
    (root / SOURCE).write_text(HALF)
    (root / TESTS).write_text(TEST)
    (root / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: none here\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return tmp_path


def judged(root: Path, text: str) -> str:
    command = [sys.executable, "-c", JUDGE, str(root), text.replace("\n", "|")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        (HALF, "survived"),
        (HALF.replace("//", "*"), "killed FAILED tests/test_half.py::test_half"),
        (HALF.replace("return", "retrun"), "killed ERROR tests/test_half.py"),
        (HALF + READS_ALL, "survived"),
        ("def half(x):\n    while x:\n        pass\n", "out of time"),
    ],
)
def test_what_becomes_of_a_mutant(checkout: Path, changed: str, verdict: str) -> None:
    assert judged(checkout, changed).startswith(verdict)
    assert (checkout / "checkout" / SOURCE).read_text() == HALF
    assert (checkout / "copy" / SOURCE).read_text() == HALF


def test_each_writing_has_seconds_of_its_own(tmp_path: Path) -> None:
    """Python tells a stale compiled module by its size and by whole seconds."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "a")], check=True)
    (tmp_path / "a" / SOURCE).write_text(HALF)
    copy = judge.Copy(tmp_path / "a", tmp_path / "b")
    seen = set()
    for text in (HALF.replace("2", "3"), HALF.replace("2", "4")):
        with copy.changed(SOURCE, text):
            seen.add(int((copy.root / SOURCE).stat().st_mtime))
        seen.add(int((copy.root / SOURCE).stat().st_mtime))
    assert len(seen) == 4
