"""What tests leave behind: files in the run's temporary directory, and threads.

A thread that outlives its test goes on in the tests that come after it on the same worker: a client
that was never closed looks for its brokers there, and its log becomes theirs. So a thread that is
alive at the end of a run, when each fixture is closed, fails the run. Trio's idle threads end by
themselves, and those of py4j end with Spark's JVM, which serves all tests of the process.

Everything that the tests and their processes make in the temporary directory is in one of the
run's own, which is removed at the end. A file of mockbroker that is left there fails the run: users
would find it in theirs. Directories of pytest's `tmp_path` stay where pytest keeps them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

OURS = "mockbroker-*"
_PYTEST_ROOT = "PYTEST_DEBUG_TEMPROOT"
_IDLE = "Trio thread "
_LASTING = f"{os.sep}py4j{os.sep}"
_THREADS = "mockbroker_threads"


class LeftThreads:
    """A plugin of pytest: each process that runs tests looks at its own threads."""

    def __init__(self) -> None:
        self._before = weakref.WeakSet(threading.enumerate())
        self._first_seen_after: weakref.WeakKeyDictionary[threading.Thread, str] = (
            weakref.WeakKeyDictionary()
        )
        self.found: list[str] = []

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        for thread in threading.enumerate():
            if thread not in self._before:
                self._first_seen_after.setdefault(thread, nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        found = [
            f"{thread.name}, first seen after {test}"
            for thread, test in self._first_seen_after.items()
            if thread.is_alive() and not thread.name.startswith(_IDLE) and not _lasts(thread)
        ]
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_THREADS] = found
            return
        self.found += found
        _fail_if(session, self.found)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """xdist: a worker has ended, and this process is told before its own run ends."""
        self.found += getattr(node, "workeroutput", {}).get(_THREADS, [])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        _tell(terminalreporter, "threads that tests left", self.found)


class LeftFiles:
    """A plugin of pytest: the process that starts the workers makes the directory."""

    def __init__(self) -> None:
        former = tempfile.gettempdir()
        self.directory = Path(tempfile.mkdtemp(prefix="tests-of-mockbroker-"))
        self.found: list[str] = []
        self._environment = {"TMPDIR": str(self.directory), _PYTEST_ROOT: former}
        self._former = {name: os.environ.get(name) for name in self._environment}
        self._use(self._environment)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.found = sorted(each.name for each in self.directory.glob(OURS))
        _fail_if(session, self.found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        _tell(terminalreporter, "left in the temporary directory", self.found)

    def pytest_unconfigure(self) -> None:
        self._use(self._former)
        shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def _use(environment: dict[str, str | None] | dict[str, str]) -> None:
        for name, value in environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        tempfile.tempdir = None  # Python looks at the environment once


def _lasts(thread: threading.Thread) -> bool:
    """Whether a thread that is running has begun in a library whose threads last."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if _LASTING in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _fail_if(session: pytest.Session, found: list[str]) -> None:
    if found and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _tell(reporter: pytest.TerminalReporter, title: str, found: list[str]) -> None:
    if found:
        reporter.section(title, red=True)
        for each in found:
            reporter.line(each)
