"""One temporary directory for a run of the tests, and what they leave in it.

Everything that the tests and their processes make in the temporary directory is in one of the
run's own, which is removed at the end. A file of mockbroker that is left there fails the run: users
would find it in theirs. Directories of pytest's `tmp_path` stay where pytest keeps them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

OURS = "mockbroker-*"
_PYTEST_ROOT = "PYTEST_DEBUG_TEMPROOT"


class Leftovers:
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
        if self.found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.found:
            terminalreporter.section("left in the temporary directory", red=True)
            for name in self.found:
                terminalreporter.line(name)

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
