"""Images of clusters in directories: one file, `cluster.log`, that begins with a whole image.

A new file is written aside and renamed, so a reader finds the old or the new one, whole. Changes
follow the image (see `data_dir`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mockbroker.core.snapshot.builder import Builder
from mockbroker.core.snapshot.changes import image_frames
from mockbroker.core.snapshot.frames import (
    DamageError,
    FormatError,
    check_file_header,
    file_header,
    read_frames,
)
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.server.config import ServerError

FILE = "cluster.log"
NEW_FILE = "cluster.log.new"
COMPACTED_FILE = "cluster.log.compacted"
DAMAGED_FILE = "cluster.log.damaged"
LOCK_FILE = "lock"
PIECES_PER_WRITE = 512  # below IOV_MAX everywhere

Pieces = list[bytes | memoryview]


class Found(NamedTuple):
    """The content of a directory: the image, its end in the file, and the file's length.

    `damage` is what is wrong behind the end; None where nothing is, or the last write was cut off.
    """

    image: ClusterImage
    end: int
    file_bytes: int
    damage: DamageError | None


def read_directory(directory: Path, *, recover: bool = False) -> Found:
    """The cluster in a directory. Nothing is written.

    Raises ServerError that names the file and its fault: missing, no snapshot, damaged. With
    `recover`, everything before the damage is returned instead.
    """
    path = directory / FILE
    try:
        with path.open("rb", buffering=1 << 20) as file:
            return _read(path, file, recover=recover)
    except OSError as error:
        raise ServerError(f"cannot read {path}: {error.strerror}") from None


def _read(path: Path, file: BinaryIO, *, recover: bool) -> Found:
    file_bytes = os.fstat(file.fileno()).st_size
    builder = Builder()
    damage = None
    try:
        end = check_file_header(file)
    except FormatError as error:
        raise ServerError(f"{path}: {error}") from None
    try:
        for frame in read_frames(file, end, file_bytes):
            builder.add(frame)
            end = frame.end
        if not builder.complete:
            # The file was renamed when it was whole, so no crash has cut it off.
            raise DamageError(end, "the file ends before the snapshot that it begins with")
    except DamageError as error:
        damage = error
    if damage is not None and not recover:
        raise ServerError(
            f"{path} is damaged at byte {damage.offset}: {damage.reason}. "
            f"With --recover, what stands before that is kept and the rest is dropped."
        )
    try:
        return Found(builder.image(), end, file_bytes, damage)
    except DamageError as error:
        raise ServerError(f"{path} is damaged at byte {end}: {error.reason}") from None


def write_directory(directory: Path, image: ClusterImage) -> None:
    """Save an image in `directory`, in place of the saved one. Raises ServerError."""
    with hold(directory):
        new = directory / NEW_FILE
        fd, _ = begin_file(new, image_frames(image))
        os.close(fd)
        put_in_place(new)


def begin_file(path: Path, frames: Iterable[Pieces]) -> tuple[int, int]:
    """Write and sync a new file; returns its descriptor, open for more, and its size.

    Raises ServerError.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise ServerError(f"cannot write {path}: {error.strerror}") from None
    try:
        size = write_all(fd, [file_header()])
        for pieces in frames:
            size += write_all(fd, pieces)
        os.fsync(fd)
    except OSError as error:
        os.close(fd)
        raise ServerError(f"cannot write {path}: {error.strerror}") from None
    return fd, size


def put_in_place(path: Path) -> None:
    """Rename a new file to the directory's file, durably. Raises OSError."""
    directory = path.parent
    path.replace(directory / FILE)
    with contextlib.suppress(OSError):  # not every system lets a directory be synced
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_all(fd: int, pieces: Pieces) -> int:
    """Write all bytes of all pieces; returns their number. Raises OSError."""
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


@contextlib.contextmanager
def hold(directory: Path) -> Iterator[None]:
    """Lock a directory, made if necessary, for the block. Raises ServerError."""
    fd = lock(directory)
    try:
        yield
    finally:
        os.close(fd)


def lock(directory: Path) -> int:
    """Lock a directory until the returned descriptor is closed. Raises ServerError."""
    path = directory / LOCK_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ServerError(f"cannot use {directory}: {error.strerror}") from None
    try:
        import fcntl
    except ImportError:  # a system without it (Windows) has to do without the lock
        return fd
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(fd, 20).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        raise ServerError(f"{directory} is in use by process {holder}") from None
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return fd
