"""Images of clusters in directories: one file, `cluster.log`, that begins with a whole image.

A new file is written aside and renamed, so a reader finds either the old or the new one. Changes
follow the image (see `data_dir`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
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
from mockbroker.disk import DISK, Disk, Pieces, put_in_place
from mockbroker.server.config import ServerError
from mockbroker.server.storage.lock import Lock

FILE = "cluster.log"
NEW_FILE = "cluster.log.new"
COMPACTED_FILE = "cluster.log.compacted"
DAMAGED_FILE = "cluster.log.damaged"


class Found(NamedTuple):
    """The content of a directory: the image, its end in the file, and the file's length.

    `damage` describes damage behind the end; None without damage, or if the last write was cut off.
    """

    image: ClusterImage
    end: int
    file_bytes: int
    damage: DamageError | None


def read_directory(directory: Path, *, recover: bool = False, disk: Disk = DISK) -> Found:
    """The cluster in a directory. Nothing is written.

    Raises ServerError that names the file and its fault: missing, no snapshot, damaged. With
    `recover`, everything before the damage is returned instead.
    """
    path = directory / FILE
    try:
        with disk.read(path) as file:
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
            # The file was renamed when it was complete, so no crash has cut it off.
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
        raise ServerError(
            f"{path} is damaged at byte {end}: {error.reason}. Use another directory."
        ) from None


def write_directory(directory: Path, image: ClusterImage, disk: Disk = DISK) -> None:
    """Save an image in `directory`, in place of the saved one. Raises ServerError.

    A crash leaves the former file or the new one.
    """
    lock = Lock(directory, disk)
    saved = False
    try:
        new, path = directory / NEW_FILE, directory / FILE
        fd, _ = begin_file(disk, new, image_frames(image))
        disk.close(fd)
        try:
            put_in_place(disk, new, path)
        except OSError as error:
            with suppress(OSError):
                disk.remove(new)
            raise ServerError(f"cannot write {path}: {error.strerror}") from None
        saved = True
    finally:
        lock.release(undo=not saved)


def begin_file(disk: Disk, path: Path, frames: Iterable[Pieces]) -> tuple[int, int]:
    """Write and sync a new file; returns its descriptor, open for more, and its size.

    Raises ServerError; then there is no file.
    """
    fd = -1
    try:
        fd = disk.begin(path)
        size = disk.write(fd, [file_header()])
        for pieces in frames:
            size += disk.write(fd, pieces)
        disk.sync(fd)
    except OSError as error:
        if fd >= 0:
            disk.close(fd)
        with suppress(OSError):
            disk.remove(path)
        raise ServerError(f"cannot write {path}: {error.strerror}") from None
    return fd, size
