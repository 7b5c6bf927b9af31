"""`mockbroker serve` as a process: started, waited for, talked to, told to stop.

with Served("--port", "0", "--topic", "orders:4") as served:
    client = Producer({"bootstrap.servers": served.bootstrap_servers})
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import NamedTuple, Self

READY_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 15.0

# Below the ports that the kernel gives to clients, so that none of them is in the way.
FIRST_PORT, LAST_PORT = 20_000, 32_000

_RUN = [sys.executable, "-c", "from mockbroker.cli import main; main()"]


class Ended(NamedTuple):
    """How the process ended, and all that it printed."""

    code: int
    stdout: str
    stderr: str


class Served:
    """A running `mockbroker serve`; a context manager. Ports are free ones unless named."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        given = [str(argument) for argument in arguments]
        if not {"--port", "--config-file", "--listener"} & set(given):
            given += ["--port", "0"]
        if not {"--admin-port", "--no-admin"} & set(given):
            given += ["--no-admin"]
        # A process that is killed leaves its temporary files.
        self._temporary = tempfile.TemporaryDirectory(prefix="served-")
        self.process = subprocess.Popen(
            [*_RUN, "serve", *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": self._temporary.name, **(environment or {})},
        )
        self.ready_line = ""
        self._stderr = b""

    def __enter__(self) -> Self:
        try:
            self.ready_line = self._first_line()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._temporary.cleanup()

    def _first_line(self) -> str:
        """The ready line. Raises AssertionError with what was said instead."""
        assert self.process.stdout is not None
        found, _, _ = select.select([self.process.stdout], [], [], READY_TIMEOUT_S)
        line = self.process.stdout.readline().decode() if found else ""
        if not line.startswith("ready "):
            self.process.kill()
            _, complaint = self.process.communicate()
            raise AssertionError(f"not ready: {line!r}\n{complaint.decode()}")
        return line.rstrip("\n")

    @property
    def fields(self) -> dict[str, str]:
        """The `name=value`s of the ready line."""
        words = self.ready_line.split()[1:]
        return dict(word.split("=", 1) for word in words)

    @property
    def bootstrap_servers(self) -> str:
        return self.fields["bootstrap"]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each broker."""
        pairs = (each.rsplit(":", 1) for each in self.bootstrap_servers.split(","))
        return [(host, int(port)) for host, port in pairs]

    def stderr_until(self, wanted: bytes) -> str:
        """Read what it prints to stderr up to some words. Raises AssertionError."""
        assert self.process.stderr is not None
        deadline = time.monotonic() + READY_TIMEOUT_S
        while wanted not in self._stderr:
            found, _, _ = select.select([self.process.stderr], [], [], READY_TIMEOUT_S)
            chunk = os.read(self.process.stderr.fileno(), 65536) if found else b""
            assert chunk, f"{wanted!r} is not in {self._stderr!r}"
            assert time.monotonic() < deadline
            self._stderr += chunk
        return self._stderr.decode()

    def stop(self, *signals: int) -> Ended:
        """Send these signals (SIGTERM, without any) and wait for the end."""
        for number in signals or (signal.SIGTERM,):
            self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=STOP_TIMEOUT_S)
        text = (self._stderr + (stderr or b"")).decode()
        return Ended(self.process.returncode, self.ready_line + "\n" + stdout.decode(), text)


def serve_and_fail(*arguments: str | Path) -> Ended:
    """Run `mockbroker serve` that is expected to end by itself, on free ports unless given."""
    given = [str(each) for each in arguments]
    if not {"--port", "--listener"} & set(given):
        given += ["--port", "0"]
    if not {"--admin-port", "--no-admin"} & set(given):
        given += ["--admin-port", "0"]
    done = subprocess.run(
        [*_RUN, "serve", *given],
        capture_output=True,
        check=False,
        timeout=READY_TIMEOUT_S,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def free_block(count: int) -> int:
    """The first of so many ports in a row that were free a moment ago."""
    draw = Random()
    for _ in range(100):
        first = draw.randrange(FIRST_PORT, LAST_PORT - count)
        sockets = [socket.socket() for _ in range(count)]
        try:
            for index, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + index))
            return first
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
    raise AssertionError(f"no {count} free ports in a row")
