"""The tests carried out on a mutant, in a fork of this process with a limit of CPU time."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

KILLED, SURVIVED, OUT_OF_TIME, NO_TESTS = "killed", "survived", "out of time", "no tests"

MEMORY_MAX = 8 << 30
# A mutant may make a test wait for what never comes; then no CPU time passes. On a busy machine,
# little passes in any test.
TEST_TIMEOUT_S = 600

_OPTIONS = (
    "-x", "-q", "--tb=line", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-o", f"timeout={TEST_TIMEOUT_S}",
    "-m", "not (slow or java or spark or node or go or real_kafka)",
)  # fmt: skip
_NO_TESTS = 5  # pytest's exit code
# What every run imports and no mutant changes.
_PRELOADED = (
    "hypothesis", "pytest", "pytest_timeout", "pytest_trio", "trio", "msgspec", "rich", "click",
    "construct", "crc32c", "cramjam", "re2", "yaml", "mockbroker_protocol.messages",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a run of tests ended."""

    verdict: str
    cpu_s: float
    failed: str
    """The first test that failed, or the last lines of the output."""


class Copy:
    """A copy of what a checkout has, in which one file at a time is changed."""

    def __init__(self, checkout: Path, root: Path) -> None:
        self.root = root
        self._writes = 0
        shutil.rmtree(root, ignore_errors=True)
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=checkout, capture_output=True, check=True).stdout
        for name in listed.decode().split("\0"):
            if name and (checkout / name).is_file():
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / name, target)

    @contextlib.contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Have another text in a file.

        Compiled modules are told apart by size and by seconds: each writing has seconds of its own.
        """
        file = self.root / path
        original = file.read_text("utf-8")
        try:
            self._write(file, text)
            yield
        finally:
            self._write(file, original)

    def _write(self, file: Path, text: str) -> None:
        self._writes += 1
        file.write_text(text, encoding="utf-8")
        stamp = 1_000_000_000 + 10 * self._writes
        os.utime(file, (stamp, stamp))


def preload(root: Path) -> None:
    """Import what all runs share, and have this process import the rest from a copy."""
    os.chdir(root)
    sys.path[:0] = [str(root), str(root / "protocol"), str(root / "fixtures")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
    os.environ["CI"] = "1"  # the same examples each time
    for name in _PRELOADED:
        with contextlib.suppress(ImportError):
            __import__(name)


def run(tests: Sequence[str], cpu_max_s: float, wall_max_s: float, output: Path) -> Outcome:
    """Carry out tests until the first one fails."""
    pid = os.fork()
    if pid == 0:
        _child(tests, cpu_max_s, output)
    status, used = _waited(pid, wall_max_s)
    text = output.read_text("utf-8", errors="replace")
    failed = _first_failure(text)
    cpu_s = used.ru_utime + used.ru_stime
    if os.WIFSIGNALED(status):
        return Outcome(OUT_OF_TIME, cpu_s, f"signal {os.WTERMSIG(status)}")
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return Outcome(SURVIVED, cpu_s, "")
    return Outcome(NO_TESTS if code == _NO_TESTS else KILLED, cpu_s, failed)


def _child(tests: Sequence[str], cpu_max_s: float, output: Path) -> None:
    code = 3
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_max_s), int(cpu_max_s) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        # A mutant may read any descriptor: also the pipe that the list of mutants comes from.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        for name in [each for each in sys.modules if each.partition(".")[0] == "tests"]:
            del sys.modules[name]  # those of the checkout; the copy has its own
        import pytest

        code = int(pytest.main([*_OPTIONS, *tests]))
    finally:
        os._exit(code)


def _waited(pid: int, wall_max_s: float) -> tuple[int, resource.struct_rusage]:
    """Wait for a fork, and end it with what it started when it takes too long."""
    late = threading.Timer(wall_max_s, _end, (pid,))
    late.start()
    try:
        _, status, used = os.wait4(pid, 0)
    finally:
        late.cancel()
        late.join()  # no thread lives when the next fork begins
    _end(pid)  # programs that it left behind
    return status, used


def _end(session: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _first_failure(text: str) -> str:
    lines = text.strip().splitlines()
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return (named or lines[-3:] or [""])[0][:300]
