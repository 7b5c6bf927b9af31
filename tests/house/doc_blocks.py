"""Runs the examples of a page, top to bottom, as a reader who pastes them would.

- `console`: `$ ` lines are commands, the lines below one are its output (`...` stands for
  anything). `mockbroker serve` starts in the background on free ports, and lives until the next
  one or the end of the page; the addresses that the docs name are replaced by its own from then on.
- A block that opens with `# name.py` or `# name.toml` is a file; a `test_*.py` is run by pytest,
  together with those that follow, as long as nothing else has to be run in between.
- Other `python` blocks are programs. Everything else is only read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# (\w+\.(?:py|toml))\n")
READY = re.compile(r"ready bootstrap=(\S+) admin=http://(\S+)")

TIMEOUT_S = 240  # of a program; a busy machine takes minutes for what takes seconds
HANG_S = 180  # after that time a test that hangs prints where
DOCS_BOOTSTRAP = "127.0.0.1:9092"
DOCS_ADMIN = "127.0.0.1:9191"

# Not run here: `make` targets are looked up, and an installation is what runs this test.
LOOKED_UP = re.compile(r"make ([\w-]+)")
NOT_RUN = ("pip install",)


class Block(NamedTuple):
    line: int
    language: str
    text: str


def blocks_of(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        yield Block(text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2))


def commands_of(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the output lines that stand below it."""
    command: str | None = None
    output: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, output
            command, output = line[2:], []
        else:
            output.append(line)
    if command is not None:
        yield command, output


def matches(expected: list[str], actual: str) -> bool:
    """Whether the output is what the page says; `...` is anything, ports may be others.

    Blanks at the ends of lines, which tables have, do not count.
    """
    pattern = re.escape("\n".join(expected).strip())
    pattern = pattern.replace(re.escape("..."), ".*")
    pattern = re.sub(r"(127\\\.0\\\.0\\\.1):\d+", r"\1:\\d+", pattern)
    lines = "\n".join(line.rstrip() for line in actual.strip().splitlines())
    return re.fullmatch(pattern, lines, re.DOTALL) is not None


class PageRunner:
    """One reader of one page: a scratch folder, at most one cluster, the docs' words for it."""

    def __init__(self, folder: Path, timeout_s: float = TIMEOUT_S) -> None:
        self.folder = folder
        self.timeout_s = timeout_s
        self.server: subprocess.Popen[str] | None = None
        self.addresses: dict[str, str] = {}
        here = str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
            # A reader has no such plugin, which is imported as a run ends (see pyproject.toml).
            "PYTEST_ADDOPTS": "-p no:schemathesis",
        }
        self.waiting: list[str] = []

    def close(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=TIMEOUT_S)
            self.server = None

    def run(self, block: Block) -> None:
        named = FILE_NAME.match(block.text)
        if block.language == "console":
            self.run_tests()
            for command, expected in commands_of(block):
                self.command(command, expected)
        elif named is not None:
            self.file(named.group(1), block.text)
        elif block.language == "python":
            self.run_tests()
            self.program(sys.executable, "-c", self.translated(block.text))

    def file(self, name: str, text: str) -> None:
        path = self.folder / name
        if path.exists() or not name.endswith(".py") or name == "conftest.py":
            self.run_tests()  # those above it must not see it
        path.write_text(text, encoding="utf-8")
        if name.startswith("test_"):
            self.waiting.append(name)

    def run_tests(self) -> None:
        """Run the tests read so far in one go: to start pytest takes longer than most of them."""
        tests, self.waiting = self.waiting, []
        if tests:
            plain = ("-p", "no:cacheprovider", "--rootdir", str(self.folder))
            traced = ("-o", f"faulthandler_timeout={HANG_S}")
            self.program(sys.executable, "-m", "pytest", "-q", *plain, *traced, *tests)

    def command(self, command: str, expected: list[str]) -> None:
        if (target := LOOKED_UP.fullmatch(command)) is not None:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{target.group(1)}:", makefile, re.MULTILINE), command
        elif command.startswith("mockbroker serve"):
            self.serve(command, expected)
        elif not command.startswith(NOT_RUN):
            if command.startswith("curl ") and shutil.which("curl") is None:
                pytest.skip("curl is not on the PATH")
            output = self.program("bash", "-o", "pipefail", "-c", self.translated(command))
            if expected:
                assert matches(expected, output), f"$ {command}\n{output}"

    def serve(self, command: str, expected: list[str]) -> None:
        self.close()
        self.server = subprocess.Popen(
            [*command.split(), "--port", "0", "--admin-port", "0"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        ready = READY.match(line)
        assert ready is not None, f"$ {command}\n{line}"
        if expected:
            assert matches(expected, line), f"$ {command}\n{line}"
        bootstrap, admin = ready.groups()
        self.addresses = {DOCS_BOOTSTRAP: bootstrap, DOCS_ADMIN: admin}
        self.environment["MOCKBROKER_BOOTSTRAP"] = bootstrap
        self.environment["MOCKBROKER_ADMIN"] = f"http://{admin}"

    def translated(self, text: str) -> str:
        for address, actual in self.addresses.items():
            text = text.replace(address, actual)
        return text

    def program(self, *arguments: str) -> str:
        """Run to the end and return standard output.

        AssertionError with all output if it fails or does not end in time.
        """
        try:
            done = subprocess.run(
                arguments,
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=self.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as hang:
            output = (hang.stdout or b"") + (hang.stderr or b"")
            text = output.decode(errors="replace")
            message = f"{arguments[-1]}\n{text}not ended after {self.timeout_s} s"
            raise AssertionError(message) from None
        assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}{done.stderr}"
        return done.stdout
