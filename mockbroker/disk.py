"""The file operations of everything that must survive a crash.

`Disk` is the whole interface, so that a test can record the operations and build what a crash at
any of them leaves. A write is safe after `sync`; a file that was begun, renamed or removed, after
`sync_directory`. The order of operations in between is the operating system's.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

PIECES_PER_WRITE = 512  # below IOV_MAX everywhere
# What a file system answers that cannot sync directories, or a directory that may not be read.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)


def _full_sync() -> int | None:
    """The fcntl that empties the drive's cache too. On macOS, fsync does not."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    return getattr(fcntl, "F_FULLFSYNC", None)


FULL_SYNC = _full_sync()

Pieces = Sequence[bytes | memoryview]


class Disk:
    """The files of this machine. Every method raises OSError."""

    def begin(self, path: Path) -> int:
        """Make an empty file that only its owner can read, in place of any other; its descriptor
        writes at the end.
        """
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600)

    def resume(self, path: Path) -> int:
        """Open a file; the descriptor writes at its end."""
        return os.open(path, os.O_WRONLY | os.O_APPEND)

    def read(self, path: Path) -> BinaryIO:
        """Open a file for reading."""
        return path.open("rb", buffering=1 << 20)

    def write(self, fd: int, pieces: Pieces) -> int:
        """Write all bytes of all pieces; returns their number. After an error some are written."""
        total = 0
        for start in range(0, len(pieces), PIECES_PER_WRITE):
            some = pieces[start : start + PIECES_PER_WRITE]
            size = sum(map(len, some))
            written = os.writev(fd, some)
            if written < size:
                rest = memoryview(b"".join(some))
                while written < size:
                    written += os.write(fd, rest[written:])
            total += size
        return total

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file off."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Return once the disk has the file. After an error some of it may be lost for good."""
        if FULL_SYNC is not None:
            import fcntl

            try:
                fcntl.fcntl(fd, FULL_SYNC)
            except OSError:  # not every file system has it
                os.fsync(fd)
        else:
            os.fsync(fd)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def rename(self, path: Path, to: Path) -> None:
        """Give a file another name, in place of the file that has it."""
        path.replace(to)

    def link(self, path: Path, to: Path) -> None:
        """Give a file a second name, which no file has."""
        os.link(path, to)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def make_directory(self, path: Path) -> list[Path]:
        """Make a directory and those above it; returns those that were not there, topmost first."""
        missing = [each for each in (path, *path.parents) if not each.exists()]
        path.mkdir(parents=True, exist_ok=True)
        return missing[::-1]

    def sync_directory(self, path: Path) -> None:
        """Return once the disk has the names of all files in a directory."""
        fd = -1
        try:
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise
        finally:
            if fd >= 0:
                os.close(fd)


DISK = Disk()


def put_in_place(disk: Disk, path: Path, to: Path) -> None:
    """Rename a synced file so that a crash leaves the former file or this one. Raises OSError."""
    disk.rename(path, to)
    disk.sync_directory(to.parent)


def sync_file(disk: Disk, path: Path) -> None:
    """Return once the disk has a file. Raises OSError."""
    fd = disk.resume(path)
    try:
        disk.sync(fd)
    finally:
        disk.close(fd)
