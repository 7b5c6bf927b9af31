"""A cluster in the background: `serve --daemon` starts it, `mockbroker stop` ends it.

The process that was called leaves as soon as clients can connect to the one it made. That one holds
a lock on its pid file for as long as it lives, so that the file of a process that was killed is
known for what it is, and no other process is ever taken for a cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from mockbroker.actors.config import ServerError

PID_FILE = Path("mockbroker.pid")
# How long `stop` waits between two looks.
LOOK_AGAIN_S = 0.02
STOP_TIMEOUT_S = 30.0


class Daemon:
    """Pid file and pipe of a cluster that goes into the background.

    Raises ServerError when a cluster with this pid file runs already, or the file cannot be
    written.
    """

    def __init__(self, pid_file: Path, log_file: Path | None) -> None:
        self.pid_file = pid_file.absolute()
        self._pid_fd = _open_locked(self.pid_file)
        try:
            self._log_fd = _open_log(log_file)
        except ServerError:
            self.end()
            os.close(self._pid_fd)
            raise
        self._ready_fd = -1

    def detach(self) -> None:
        """Go on in a process of its own. Only that process returns.

        The caller's exits once `announce` was called, with status 0, or with the status of the
        other when that one ends before.
        """
        reader, writer = os.pipe()
        pid = os.fork()
        if pid:
            os.close(writer)
            _leave(pid, reader)
        os.close(reader)
        os.setsid()
        self._ready_fd = writer
        os.ftruncate(self._pid_fd, 0)
        os.write(self._pid_fd, b"%d\n" % os.getpid())
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, sys.stdin.fileno())

    def announce(self, line: str) -> None:
        """Say that clients can connect, and let go of the terminal."""
        line = f"{line} pid={os.getpid()} pid-file={self.pid_file}\n"
        with contextlib.suppress(BrokenPipeError):  # whoever called was interrupted meanwhile
            os.write(self._ready_fd, line.encode())
        os.close(self._ready_fd)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(self._log_fd, stream.fileno())

    def end(self) -> None:
        """Leave no pid file behind."""
        self.pid_file.unlink(missing_ok=True)


def _open_locked(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ServerError(f"cannot write the pid file {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode().strip()
        os.close(descriptor)
        raise ServerError(f"a cluster runs already, as process {pid} of {path}") from None
    return descriptor


def _open_log(path: Path | None) -> int:
    try:
        return os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise ServerError(f"cannot write the log file {path}: {error.strerror}") from None


def _leave(pid: int, reader: int) -> NoReturn:
    """Print the other's ready line and exit, or exit as it did."""
    with os.fdopen(reader, encoding="utf-8") as ready:
        line = ready.read()
    if line:
        sys.stdout.write(line)
        sys.stdout.flush()
        os._exit(0)  # the pid file and everything else belong to the other process now
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


@click.command()
@click.option(
    "--pid-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=PID_FILE,
    show_default=True,
    help="That of the cluster.",
)
def stop(pid_file: Path) -> None:
    """End a cluster that runs in the background, and wait until it has ended."""
    pid = running(pid_file)
    if pid is None:
        raise click.ClickException(f"no cluster runs with the pid file {pid_file}")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while running(pid_file) == pid:
        if time.monotonic() > deadline:
            raise click.ClickException(f"process {pid} did not end in {STOP_TIMEOUT_S:.0f} s")
        time.sleep(LOOK_AGAIN_S)


def running(pid_file: Path) -> int | None:
    """The process that holds this pid file, or None when there is none."""
    try:
        descriptor = os.open(pid_file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdecimal() else None
    finally:
        os.close(descriptor)
    return None
