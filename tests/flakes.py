"""`python -m tests.flakes --runs 20 [TESTS…]`: tests that pass in some runs and fail in others.

Each run has the tests in parallel, with twice as many workers as there are cores, so that they
compete. All tests run, the slow ones too, unless `--marked 'not slow'` or another expression of
markers selects some. Prints each test that failed, with its message, and in how many runs; the exit
code is 1 if there is one. A run that fails without a test, because threads or files are left,
counts as well. What failed tests leave is in build/flakes/.

Twenty runs take hours: with `--resume` the command goes on after the runs that have ended, if
nothing has changed since.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec

from tests.fuzz.progress import code_hash, save
from tests.house.lint import ROOT

FOLDER = ROOT / "build" / "flakes"
CODE = ("mockbroker", "protocol", "fixtures", "tests", "bench", "requirements")
"""What a run depends on. The docs have the figures of the runs."""
WORKERS_A_CORE = 2
MESSAGE_CHARS_MAX = 500


class Runs(msgspec.Struct, kw_only=True):
    """The runs that have ended, all of the same tests and code: how many tests each had, and in how
    many runs each test failed.
    """

    tests: list[str]
    marked: str
    code: str
    ended: int = 0
    count: int = 0
    failed: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, count: int, failed: dict[str, str]) -> None:
        self.ended += 1
        self.count = count
        for name in failed:
            self.failed[name] = self.failed.get(name, 0) + 1

    def resumed(self, path: Path) -> Runs:
        """The runs in the file. Raises SystemExit if they are of other tests or code."""
        if not path.exists():
            raise SystemExit(f"nothing to resume: {path} does not exist")
        saved = msgspec.json.decode(path.read_bytes(), type=Runs)
        for name in ("tests", "marked", "code"):
            if getattr(saved, name) != getattr(self, name):
                what = "code: it has changed" if name == "code" else "tests"
                raise SystemExit(f"{path} has runs of other {what}")
        return saved


def failures(report: Path) -> tuple[int, dict[str, str]]:
    """How many tests a run had, by its JUnit report, and which of them failed with what message."""
    cases = ET.parse(report).getroot().findall(".//testcase")
    failed = {}
    for case in cases:
        found = case.find("failure")
        if found is None:
            found = case.find("error")
        if found is not None:
            failed[f"{case.get('classname')}::{case.get('name')}"] = found.get("message", "")
    return len(cases), failed


def run_once(
    tests: list[str], workers: int, folder: Path, marked: str
) -> tuple[int, dict[str, str]]:
    """How many tests a run had, and the messages of those that failed; the rest is in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.xml"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadscope"),
        *("-m", marked, "-p", "no:cacheprovider", f"--junit-xml={report}"),
        *(f"--mockbroker-artifacts={folder / 'artifacts'}", *tests),
    ]
    report.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"no report: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    count, failed = failures(report)
    if done.returncode and not failed:
        failed["the run"] = f"exit code {done.returncode}: {done.stdout[-MESSAGE_CHARS_MAX:]}"
    return count, failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.flakes", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=WORKERS_A_CORE * (os.cpu_count() or 1))
    parser.add_argument("--marked", default="", help="an expression of markers, as for pytest's -m")
    parser.add_argument("--resume", action="store_true", help="go on after those that have ended")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for what runs leave")
    parser.add_argument("tests", nargs="*", help="files and folders; without them, all tests")
    arguments = parser.parse_args()
    folder, path = arguments.folder, arguments.folder / "runs.json"
    runs = Runs(tests=arguments.tests, marked=arguments.marked, code=code_hash(ROOT, CODE))
    if arguments.resume:
        runs = runs.resumed(path)
    for number in range(runs.ended + 1, arguments.runs + 1):
        started = time.monotonic()
        count, failed = run_once(
            arguments.tests, arguments.workers, folder / f"run-{number}", arguments.marked
        )
        runs.add(count, failed)
        save(runs, path)
        took, load = time.monotonic() - started, os.getloadavg()[1]
        print(
            f"run {number} of {arguments.runs}: {count} tests, {len(failed)} failed, "
            f"{took:.0f} s, load {load:.0f}",
            flush=True,
        )
        for name, message in failed.items():
            print(f"  {name}: {message[:MESSAGE_CHARS_MAX]}", flush=True)
    for name, times in sorted(runs.failed.items(), key=lambda each: -each[1]):
        print(f"{name}: failed in {times} of {runs.ended} runs")
    print(f"{len(runs.failed)} of {runs.count} tests failed in {runs.ended} runs")
    return int(bool(runs.failed))


if __name__ == "__main__":
    sys.exit(main())
