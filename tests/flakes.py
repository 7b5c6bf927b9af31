"""`python -m tests.flakes --runs 20 [FILES…]`: tests that pass in some runs and fail in others.

Each run has the tests in parallel, with twice as many workers as there are cores, so that they
compete. All tests run, the slow ones too, unless `--marked 'not slow'` or another expression of
markers selects some. Prints each test that failed, with its message, and in how many runs; the exit
code is 1 if there is one. A run that fails without a test, because threads or files are left, is
told as well, and counts for no file. What pytest prints, and what failed tests leave, is in
build/flakes/.

With `--stops`, tests are also stopped at lines of their code, at others in each run:
tests/support/stops.py.

Twenty runs take hours: with `--resume` the command goes on after the runs that have ended. A file
of tests begins anew if it has changed, or anything that it depends on
(tests/support/dependencies.py). The runs of the other files count on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.house.lint import ROOT
from tests.support.dependencies import Dependencies
from tests.support.saved_runs import save

FOLDER = ROOT / "build" / "flakes"
WORKERS_A_CORE = 2
MESSAGE_CHARS_MAX = 500


class File(msgspec.Struct):
    """The runs of a file of tests since it became what it is, and all that it depends on: how many
    have ended, how many tests the last one had, and in how many of them each test failed.
    """

    code: str
    ended: int = 0
    count: int = 0
    failed: dict[str, int] = msgspec.field(default_factory=dict)


class Runs(msgspec.Struct, kw_only=True):
    """What is known of all files. `begun` numbers the runs, also those of a few files only."""

    marked: str
    stops: bool
    begun: int = 0
    files: dict[str, File] = msgspec.field(default_factory=dict)

    def resumed(self, path: Path) -> Runs:
        """The runs that were saved. Raises SystemExit if they are not like these."""
        if not path.exists():
            raise SystemExit(f"nothing to resume: {path} does not exist")
        saved = msgspec.json.decode(path.read_bytes(), type=Runs)
        if (saved.marked, saved.stops) != (self.marked, self.stops):
            raise SystemExit(f"{path} has runs with other markers, or other stops")
        return saved

    def take(self, codes: dict[str, str]) -> int:
        """Take in files, given with the hashes of what they depend on.

        Returns how many of them begin anew because that has changed.
        """
        changed = 0
        for name, code in codes.items():
            file = self.files.get(name)
            if file is None or file.code != code:
                changed += file is not None
                self.files[name] = File(code)
        return changed

    def ended(self, names: Iterable[str]) -> int:
        """How many runs each of these files has had at least."""
        return min(self.files[name].ended for name in names)

    def add(self, names: Iterable[str], outcome: Outcome) -> None:
        for name in names:
            file = self.files[name]
            file.ended += 1
            file.count = outcome.counts[name]
        for name, test in outcome.failed:
            failed = self.files[name].failed
            failed[test] = failed.get(test, 0) + 1

    def failed(self, names: Iterable[str]) -> list[str]:
        """A line for each test of these files that failed, the most frequent ones first."""
        found = [
            (-times, f"{test}: failed in {times} of {self.files[name].ended} runs")
            for name in names
            for test, times in self.files[name].failed.items()
        ]
        return [line for _, line in sorted(found)]

    def count(self, names: Iterable[str]) -> int:
        """How many tests these files have."""
        return sum(self.files[name].count for name in names)


class Outcome(msgspec.Struct):
    """What a run has shown: how many tests of each file ran, and the messages of those that failed,
    by file and test; or else why it failed without a test.
    """

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    failed: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    error: str = ""


def files_of(arguments: list[str]) -> list[Path]:
    """The files of tests in files and folders. Raises SystemExit if one has none."""
    found: set[Path] = set()
    for name in arguments or [str(ROOT / "tests")]:
        path = Path(name)
        files = [path] if path.is_file() else list(path.rglob("test_*.py"))
        if not files:
            raise SystemExit(f"{name} is no file of tests, and no folder that has some")
        found |= {each.resolve() for each in files}
    return sorted(found)


def codes_of(files: list[Path]) -> dict[str, str]:
    """By the files' names, the hashes of what they depend on."""
    dependencies = Dependencies(ROOT)
    return {name_of(file): dependencies.hash_of(file) for file in files}


def name_of(file: Path) -> str:
    """From the root on; elsewhere, the whole path."""
    return str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)


def module_of(name: str) -> str:
    """As a report names the module of a file: from the root on; elsewhere, the file alone."""
    path = Path(name).with_suffix("")
    return path.name if path.is_absolute() else ".".join(path.parts)


def outcome_of(report: Path, names: list[str]) -> Outcome:
    """What a JUnit report tells of these files. Raises KeyError if a test is in none of them."""
    modules = {module_of(name): name for name in names}
    outcome = Outcome()
    for case in ET.parse(report).getroot().findall(".//testcase"):
        module = case.get("classname", "")
        while module and module not in modules:  # a class is in a module
            module = module.rpartition(".")[0]
        name = modules[module]
        outcome.counts[name] += 1
        found = case.find("failure")
        if found is None:
            found = case.find("error")
        if found is not None:
            test = f"{case.get('classname')}::{case.get('name')}"
            outcome.failed[name, test] = found.get("message", "")
    return outcome


def run_once(arguments: argparse.Namespace, number: int, names: list[str]) -> Outcome:
    """Run these files. What the run leaves is in a folder with its number."""
    folder: Path = arguments.folder / f"run-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(arguments.workers)),
        *("--dist", "loadscope", "-m", arguments.marked, "-p", "no:cacheprovider"),
        *(f"--junit-xml={report}", f"--mockbroker-artifacts={folder / 'artifacts'}"),
        *(("-p", "tests.support.stops", f"--stops={number}") if arguments.stops else ()),
        *names,
    ]
    output = folder / "output.txt"
    with output.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    end = output.read_text(encoding="utf-8", errors="replace")[-MESSAGE_CHARS_MAX:]
    if not report.exists():
        raise SystemExit(f"no report: {end}")
    error = f"exit code {done.returncode}: {end}"
    try:
        outcome = outcome_of(report, names)
    except KeyError:  # a module that could not be imported
        return Outcome(error=error)
    return Outcome(error=error) if done.returncode and not outcome.failed else outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.flakes", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=WORKERS_A_CORE * (os.cpu_count() or 1))
    parser.add_argument("--marked", default="", help="an expression of markers, as for pytest's -m")
    parser.add_argument("--stops", action="store_true", help="stop tests at lines of their code")
    parser.add_argument("--resume", action="store_true", help="go on after those that have ended")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for what runs leave")
    parser.add_argument("tests", nargs="*", help="files and folders; without them, all tests")
    arguments = parser.parse_args()
    path = arguments.folder / "runs.json"
    runs = Runs(marked=arguments.marked, stops=arguments.stops)
    if arguments.resume:
        runs = runs.resumed(path)
    codes = codes_of(files_of(arguments.tests))
    if changed := runs.take(codes):
        print(f"{changed} of {len(codes)} files of tests have changed and begin anew", flush=True)
    errors = 0
    for number in range(runs.ended(codes) + 1, arguments.runs + 1):
        started = time.monotonic()
        runs.begun += 1
        names = [name for name in codes if runs.files[name].ended < arguments.runs]
        outcome = run_once(arguments, runs.begun, names)
        if outcome.error:
            errors += 1
        else:
            runs.add(names, outcome)
        save(runs, path)
        print(
            f"run {number} of {arguments.runs}: {outcome.counts.total()} tests, "
            f"{len(outcome.failed)} failed, {time.monotonic() - started:.0f} s, "
            f"load {os.getloadavg()[1]:.0f}",
            flush=True,
        )
        for (_, test), message in outcome.failed.items():
            print(f"  {test}: {message[:MESSAGE_CHARS_MAX]}", flush=True)
        if outcome.error:
            print(f"  no test, but the run failed: {outcome.error}", flush=True)
    if errors:
        print(f"{errors} runs failed without a test, and do not count")
    failed = runs.failed(codes)
    for line in failed:
        print(line)
    print(f"{len(failed)} of {runs.count(codes)} tests failed in {runs.ended(codes)} runs")
    return int(bool(errors or failed))


if __name__ == "__main__":
    sys.exit(main())
