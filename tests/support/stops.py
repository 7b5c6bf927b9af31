"""`pytest -p tests.support.stops --stops SEED`: the threads of tests are stopped now and then.

A busy machine may stop a test at any line, while its cluster and its clients go on: what the test
expects to come next may have come long before. Here each test is stopped at up to three lines for
0.4 s, and at one more while its fixtures are made, and one while they end. These are lines of code
of the tests or the docs. The seed and the test's name decide which ones; the report of a test that
fails names them.

Where nothing else runs, in no thread, process or task, there is no stop: nothing could happen
meanwhile. A test that measures time has the marker `timed`, and is not stopped.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

ROOT = Path(__file__).resolve().parents[2]
TEST_CODE = tuple(str(ROOT / name) for name in ("tests/", "docs/", "README.md"))
STOP_S = 0.4
STOPS_MAX = {"setup": 1, "call": 3, "teardown": 1}
"""By the phase of a test."""
CHANCES = (0.3, 0.1, 0.03, 0.01)
"""How likely it is to stop at a line. One of these holds for a phase of a test: long ones are also
stopped near their end."""


class Stops:
    """One phase of a test: where it was stopped, as `file:line`."""

    def __init__(self, item: pytest.Item, phase: str, seed: str, threads: int) -> None:
        self._random = random.Random(f"{seed} {item.nodeid} {phase}")
        self._chance = self._random.choice(CHANCES)
        self._max = STOPS_MAX[phase]
        self._threads = threads
        self._code = (*TEST_CODE, str(item.path))
        self.lines: list[str] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._at_call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _at_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        ours = file.startswith(self._code) and file != __file__
        return self._at_line if ours and len(self.lines) < self._max else None

    def _at_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if len(self.lines) == self._max:
            return None
        if event == "line" and self._random.random() < self._chance and not self._alone():
            self.lines.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
            time.sleep(STOP_S)
        return self._at_line

    def _alone(self) -> bool:
        """Whether nothing goes on while this thread is stopped."""
        threads = tasks()
        return 0 < len(threads) <= self._threads and not begun_by(threads) and not in_loop()


def tasks() -> list[Path]:
    """The threads of this process, those of libraries too. None where the system does not tell."""
    return list(Path("/proc/self/task").glob("*"))


def begun_by(threads: list[Path]) -> bool:
    """Whether one of these threads has begun a process that still runs."""
    for thread in threads:
        with suppress(OSError):  # the thread has ended
            if (thread / "children").read_text():
                return True
    return False


def in_loop() -> bool:
    """Whether this thread runs tasks, of trio or of asyncio."""
    if trio.lowlevel.in_trio_run():
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Stopping:
    """The plugin for a run."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._lines: dict[str, list[str]] = {}
        self._threads = len(tasks())

    @contextmanager
    def _stopped(self, item: pytest.Item, phase: str) -> Iterator[None]:
        if item.get_closest_marker("timed"):
            yield
            return
        stops = Stops(item, phase, self._seed, self._threads)
        try:
            with stops.installed():
                yield
        finally:
            self._lines.setdefault(item.nodeid, []).extend(stops.lines)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._lines.pop(item.nodeid, None)
        with self._stopped(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        with self._stopped(item, "call"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        with self._stopped(item, "teardown"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        report = yield
        if report.failed:
            lines = " ".join(self._lines.get(item.nodeid, []))
            report.sections.append(("stopped", f"{lines or 'nowhere'} (--stops {self._seed})"))
        return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stops", metavar="SEED", help="stop tests at lines that the seed decides")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--stops")
    if seed is not None:
        config.pluginmanager.register(Stopping(seed), "stopping")
