"""`python -m tests.flakes --runs 20 [TESTS…]`: tests that pass in some runs and fail in others.

Each run has the tests in parallel, with twice as many workers as there are cores, so that they
compete; the slow tests with `--slow`, else all others. Prints each test that failed, with its
message, and in how many runs; the exit code is 1 if there is one. A run that fails without a test,
because threads or files are left, counts as well.
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
MESSAGE_CHARS_MAX = 500


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
    tests: list[str], workers: int, report: Path, marked: str = "not slow"
) -> tuple[int, dict[str, str]]:
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadscope"),
        *("-m", marked, "-p", "no:cacheprovider", f"--junit-xml={report}", *tests),
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
    parser.add_argument("--slow", action="store_true", help="the slow tests in place of the others")
    parser.add_argument("tests", nargs="*", help="files and folders; without them, all tests")
    arguments = parser.parse_args()
    failed: Counter[str] = Counter()
    tests = 0
    with tempfile.TemporaryDirectory(prefix="mockbroker-flakes-") as directory:
        for number in range(1, arguments.runs + 1):
            tests, found = run_once(
                arguments.tests,
                arguments.workers,
                Path(directory) / "report.xml",
                "slow" if arguments.slow else "not slow",
            )
            failed.update(found.keys())
            print(
                f"run {number} of {arguments.runs}: {tests} tests, {len(found)} failed", flush=True
            )
            for name, message in found.items():
                print(f"  {name}: {message[:MESSAGE_CHARS_MAX]}", flush=True)
    for name, times in failed.most_common():
        print(f"{name}: failed in {times} of {arguments.runs} runs")
    print(f"{len(failed)} of {tests} tests failed in {arguments.runs} runs")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
