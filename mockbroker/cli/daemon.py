"""A cluster in the background: `serve --daemon` starts it, `mockbroker stop` ends it.

The first process exits as soon as clients can connect to its child. The child holds a lock on its
pid file while it lives. The pid file of a killed process is therefore known to be stale, and no
other process is taken for a cluster.
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

from mockbroker.server.config import ServerError

PID_FILE = Path("mockbroker.pid")
# The interval at which `stop` checks the process.
CHECK_INTERVAL_S = 0.02
STOP_TIMEOUT_S = 30.0


class Daemon:
    """Pid file and pipe of a cluster in the background.

    Raises ServerError if a cluster with this pid file runs already, or the file cannot be written.
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
        """Fork. Only the child returns.

        The parent exits with status 0 once the child has called `announce`, or with the child's
        status if the child exits before.
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
        """Announce that clients can connect, and leave the terminal."""
        line = f"{line} pid={os.getpid()} pid-file={self.pid_file}\n"
        with contextlib.suppress(BrokenPipeError):  # the parent was interrupted
            os.write(self._ready_fd, line.encode())
        os.close(self._ready_fd)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(self._log_fd, stream.fileno())

    def end(self) -> None:
        """Remove the pid file."""
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
        raise ServerError(f"a cluster is already running as process {pid} of {path}") from None
    return descriptor


def _open_log(path: Path | None) -> int:
    try:
        return os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise ServerError(f"cannot write the log file {path}: {error.strerror}") from None


def _leave(pid: int, reader: int) -> NoReturn:
    """In the parent: print the child's ready line and exit, or exit with its status."""
    with os.fdopen(reader, encoding="utf-8") as ready:
        line = ready.read()
    if line:
        sys.stdout.write(line)
        sys.stdout.flush()
        os._exit(0)  # the pid file belongs to the child now
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


@click.command()
@click.option(
    "--pid-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=PID_FILE,
    show_default=True,
    help="The cluster's pid file.",
)
def stop(pid_file: Path) -> None:
    """Stop a cluster in the background, and wait until it has stopped."""
    pid = running(pid_file)
    if pid is None:
        raise click.ClickException(f"no cluster runs with the pid file {pid_file}")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while running(pid_file) == pid:
        if time.monotonic() > deadline:
            raise click.ClickException(f"process {pid} did not end in {STOP_TIMEOUT_S:.0f} s")
        time.sleep(CHECK_INTERVAL_S)


def running(pid_file: Path) -> int | None:
    """The process that holds the lock on this pid file; None without one."""
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
