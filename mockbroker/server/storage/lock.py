"""A directory that one process alone may write.

The lock is the system's, on a file in the directory. It ends with the process, however that ends.
A file that is left over locks nothing. Its content, the process id, is for messages.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mockbroker.disk import DISK, Disk
from mockbroker.server.config import ServerError

FILE = "lock"
_PID_BYTES_MAX = 20


class Lock:
    """A lock on a directory, which is made if necessary, until `release`. Raises ServerError."""

    def __init__(self, directory: Path, disk: Disk = DISK) -> None:
        self._path = directory / FILE
        self._fd = -1
        self._former: bytes | None = None  # the content of the file, None without one
        self._made: list[Path] = []  # directories
        try:
            self._made = disk.make_directory(directory)
            for each in self._made:
                disk.sync_directory(each.parent)
            self._former = self._locked()
        except OSError as error:
            self._unmake()
            raise ServerError(f"cannot use {directory}: {error.strerror}") from None
        with suppress(OSError):  # a full disk is no reason to refuse
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
            os.ftruncate(self._fd, len(f"{os.getpid()}\n"))

    def _locked(self) -> bytes | None:
        """Lock the file; returns its content."""
        while True:
            is_new = not self._path.exists()
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            content = os.read(self._fd, _PID_BYTES_MAX)
            if not _lock(self._fd):
                holder = content.decode("ascii", "replace").strip() or "unknown"
                self._close()
                raise ServerError(f"{self._path.parent} is in use by process {holder}")
            # The holder before may have removed the file after it was opened here.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._fd), self._path.stat()):
                    return None if is_new else content
            self._close()

    def _close(self) -> None:
        os.close(self._fd)
        self._fd = -1

    def _unmake(self) -> None:
        with suppress(OSError):  # another program may have put a file there
            for each in reversed(self._made):
                each.rmdir()

    def release(self, *, undo: bool = False) -> None:
        """Unlock the directory. Idempotent. `undo` leaves it as it was before the lock."""
        if self._fd < 0:
            return
        with suppress(OSError):
            if undo and self._former is None:
                self._path.unlink()
                self._unmake()
            elif undo and self._former is not None:
                os.ftruncate(self._fd, 0)
                os.pwrite(self._fd, self._former, 0)
        self._close()


def _lock(fd: int) -> bool:
    """Whether the lock could be taken."""
    try:
        import fcntl
    except ImportError:  # a system without it (Windows) has to do without the lock
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
