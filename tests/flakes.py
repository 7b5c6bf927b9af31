"""`python -m tests.flakes --runs 20 [TESTS…]`: tests that pass in some runs and fail in others.

Each run has the tests in parallel, with twice as many workers as there are cores, so that they
compete. Prints each test that failed, and in how many runs; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

WORKERS_A_CORE = 2


def failures(report: Path) -> tuple[int, list[str]]:
    """How many tests a run had, by its JUnit report, and which of them failed."""
    cases = ET.parse(report).getroot().findall(".//testcase")
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return len(cases), failed


def run_once(tests: list[str], workers: int, report: Path) -> tuple[int, list[str]]:
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadscope"),
        *("-m", "not slow", "-p", "no:cacheprovider", f"--junit-xml={report}", *tests),
    ]
    report.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"no report: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failures(report)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.flakes", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=WORKERS_A_CORE * (os.cpu_count() or 1))
    parser.add_argument("tests", nargs="*", help="files and folders; without them, all tests")
    arguments = parser.parse_args()
    failed: Counter[str] = Counter()
    tests = 0
    with tempfile.TemporaryDirectory(prefix="mockbroker-flakes-") as directory:
        for number in range(1, arguments.runs + 1):
            tests, names = run_once(
                arguments.tests, arguments.workers, Path(directory) / "report.xml"
            )
            failed.update(names)
            print(
                f"run {number} of {arguments.runs}: {tests} tests, {len(names)} failed", flush=True
            )
    for name, times in failed.most_common():
        print(f"{name}: failed in {times} of {arguments.runs} runs")
    print(f"{len(failed)} of {tests} tests failed in {arguments.runs} runs")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
