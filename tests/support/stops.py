"""`pytest -p tests.support.stops --stops SEED`: the threads of tests are stopped now and then.

A busy machine may stop a test at any line, while its cluster and its clients go on: what the test
expects to come next may have come long before. Here each test is stopped at up to three lines for
0.4 s, and at one more while its fixtures are made, and one while they end. These are lines of code
of the tests or the docs. The seed and the test's name decide which ones; the report of a test that
fails names them.

A test is not stopped where nothing else can go on: its module has begun no thread and no process,
and has no socket. Nor is one with the marker `timed`, which measures time.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEST_CODE = tuple(str(ROOT / name) for name in ("tests/", "docs/", "README.md"))
STOP_S = 0.4
STOPS_MAX = {"setup": 1, "call": 3, "teardown": 1}
"""By the phase of a test."""
ALONE_S = 0.05
"""How long a test in which nothing else goes on is taken to stay so."""
CHANCES = (0.3, 0.1, 0.03, 0.01)
"""How likely it is to stop at a line. One of these holds for a phase of a test: long ones are also
stopped near their end."""


class Stops:
    """One phase of a test: where it was stopped, as `file:line`."""

    def __init__(self, item: pytest.Item, phase: str, seed: str, before: Others) -> None:
        self._random = random.Random(f"{seed} {item.nodeid} {phase}")
        self._chance = self._random.choice(CHANCES)
        self._max = STOPS_MAX[phase]
        self._before = before
        self._alone_until_s = 0.0
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
        if len(self.lines) == self._max:
            sys.settrace(None)
            return None
        file = frame.f_code.co_filename
        return self._at_line if file.startswith(self._code) and file != __file__ else None

    def _at_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if len(self.lines) == self._max:
            return None
        hit = event == "line" and self._random.random() < self._chance
        if hit and time.monotonic() >= self._alone_until_s:
            if Others().more_than(self._before):
                self.lines.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
                time.sleep(STOP_S)
            else:
                self._alone_until_s = time.monotonic() + ALONE_S
        return self._at_line


class Others:
    """What may go on while the thread of a test is stopped: this process's other threads, those of
    libraries too, the processes that it began, and its sockets. Loops of tasks have sockets, too.
    """

    def __init__(self) -> None:
        tasks = list(Path("/proc/self/task").glob("*"))
        self._known = bool(tasks)  # other systems do not tell
        self._all = {*tasks, *_children(tasks), *_sockets()}

    def more_than(self, before: Others) -> bool:
        """Whether some are new. True where that is not known."""
        return not self._known or not self._all <= before._all


def _children(tasks: list[Path]) -> Iterator[str]:
    for task in tasks:
        with suppress(OSError):  # the thread has ended
            yield from (task / "children").read_text().split()


def _sockets() -> Iterator[str]:
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # it was closed
            target = os.readlink(descriptor)
            if target.startswith("socket:"):
                yield target


class Stopping:
    """The plugin for a run."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._lines: dict[str, list[str]] = {}
        self._path: Path | None = None
        self._before = Others()

    @contextmanager
    def _stopped(self, item: pytest.Item, phase: str) -> Iterator[None]:
        if item.get_closest_marker("timed"):
            yield
            return
        stops = Stops(item, phase, self._seed, self._before)
        try:
            with stops.installed():
                yield
        finally:
            self._lines.setdefault(item.nodeid, []).extend(stops.lines)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._lines.pop(item.nodeid, None)
        if item.path != self._path:
            self._path, self._before = item.path, Others()
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
