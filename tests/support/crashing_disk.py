"""A disk that records its operations, fails when told to, and shows what a crash leaves.

A *kill* leaves all that the system was given, up to some byte of the operation that it interrupts.
A *power failure* leaves what was synced. Of the rest, each sector of a file, its size, and each
name in a directory is as at any time since the sync, independently of all others.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from mockbroker.core.snapshot.frames import SECTOR_BYTES
from mockbroker.disk import Disk, Pieces

Files = dict[Path, bytes]


class Content(NamedTuple):
    """A file has this content from here on."""

    file: int
    data: bytes


class Name(NamedTuple):
    """A name is that of a file from here on (None: of a directory), and `former` is none."""

    path: Path
    file: int | None
    former: Path | None = None


class Removed(NamedTuple):
    """A name is none from here on."""

    path: Path


class Synced(NamedTuple):
    """The disk has a file as it was before operation `since`."""

    file: int
    since: int


class DirectorySynced(NamedTuple):
    """The disk has the names in a directory."""

    path: Path


Operation = Content | Name | Removed | Synced | DirectorySynced


class CrashingDisk(Disk):
    """Works on the real disk, and remembers. `fail` raises an OSError or returns: it is called with
    the name of each operation before that is done.
    """

    def __init__(self, fail: Callable[[str], None] = lambda _: None) -> None:
        self.operations: list[Operation] = []
        self.fail = fail
        self._files: dict[int, int] = {}  # by descriptor
        self._names: dict[Path, int] = {}
        self._contents: list[bytes] = []
        self._lock = threading.Lock()

    @property
    def open_files(self) -> int:
        """How many descriptors are open."""
        return len(self._files)

    # -- as Disk -----------------------------------------------------------------------------------

    def begin(self, path: Path) -> int:
        self.fail("begin")
        is_new = not path.exists()
        fd = super().begin(path)
        with self._lock:
            if is_new:
                self._name(path, self._new_file(b""))
            self._files[fd] = self._names[path]
            if not is_new:
                self._content(self._names[path], b"")
        return fd

    def resume(self, path: Path) -> int:
        self.fail("resume")
        with self._lock:
            self._known(path)
            fd = super().resume(path)
            self._files[fd] = self._names[path]
        return fd

    def write(self, fd: int, pieces: Pieces) -> int:
        data = b"".join(pieces)
        try:
            self.fail("write")
        except OSError:
            data = data[: len(data) // 2]  # a disk becomes full in the middle
            raise
        finally:
            with self._lock:
                file = self._files[fd]
                self._content(file, self._contents[file] + data)
                super().write(fd, [data])
        return len(data)

    def truncate(self, fd: int, size: int) -> None:
        self.fail("truncate")
        with self._lock:
            file = self._files[fd]
            self._content(file, self._contents[file][:size])
            super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        with self._lock:
            file, since = self._files[fd], len(self.operations)
        self.fail("sync")
        with self._lock:
            self.operations.append(Synced(file, since))

    def close(self, fd: int) -> None:
        with self._lock:
            del self._files[fd]
        super().close(fd)

    def rename(self, path: Path, to: Path) -> None:
        self.fail("rename")
        with self._lock:
            self._known(path)
            self._known(to)
            super().rename(path, to)
            self._name(to, self._names.pop(path), path)

    def link(self, path: Path, to: Path) -> None:
        self.fail("link")
        with self._lock:
            self._known(path)
            super().link(path, to)
            self._name(to, self._names[path])

    def remove(self, path: Path) -> None:
        self.fail("remove")
        super().remove(path)
        with self._lock:
            if self._names.pop(path, None) is not None:
                self.operations.append(Removed(path))

    def make_directory(self, path: Path) -> list[Path]:
        self.fail("make_directory")
        made = super().make_directory(path)
        self.operations += [Name(each, None) for each in made]
        return made

    def sync_directory(self, path: Path) -> None:
        self.fail("sync_directory")
        with self._lock:
            self.operations.append(DirectorySynced(path))

    # -- recording ---------------------------------------------------------------------------------

    def _new_file(self, data: bytes) -> int:
        self._contents.append(data)
        return len(self._contents) - 1

    def _known(self, path: Path) -> None:
        """Know a file that was there before: the disk has it."""
        if path.exists() and path not in self._names:
            file = self._new_file(b"")
            self._content(file, path.read_bytes())
            self.operations.append(Synced(file, len(self.operations)))
            self._name(path, file)
            self.operations.append(DirectorySynced(path.parent))

    def _name(self, path: Path, file: int, former: Path | None = None) -> None:
        self._names[path] = file
        self.operations.append(Name(path, file, former))

    def _content(self, file: int, data: bytes) -> None:
        self._contents[file] = data
        self.operations.append(Content(file, data))

    # -- crashes -----------------------------------------------------------------------------------

    def killed(self, at: int, step: int = 1) -> Iterator[Files]:
        """The files after a kill before or in operation `at`, of which every `step`-th byte may be
        the last.
        """
        history = self.operations[:at]
        yield _files(_names(history), _contents(history))
        following = self.operations[at] if at < len(self.operations) else None
        if isinstance(following, Content):
            contents = _contents(history)
            former, data = contents.get(following.file, b""), following.data
            for size in range(len(former) + 1, len(data), step):
                yield _files(_names(history), {**contents, following.file: data[:size]})

    def without_power(self, at: int, draw: Random) -> Files:
        """Files that a power failure may leave after the operations up to `at`."""
        history = self.operations[:at]
        synced = dict.fromkeys({each.file for each in history if isinstance(each, Content)}, 0)
        for each in history:
            if isinstance(each, Synced):
                synced[each.file] = max(synced[each.file], each.since)
        contents = {
            file: _surviving(_versions(history, file, since), draw)
            for file, since in synced.items()
        }
        names = _surviving_names(history, draw)
        made = {each.path for each in history if isinstance(each, Name) and each.file is None}
        return _files(names, contents, made - names.keys())


def _contents(history: Sequence[Operation]) -> dict[int, bytes]:
    return {each.file: each.data for each in history if isinstance(each, Content)}


def _apply(names: dict[Path, int | None], operation: Operation) -> None:
    if isinstance(operation, Name):
        if operation.former is not None:
            names.pop(operation.former, None)
        names[operation.path] = operation.file
    elif isinstance(operation, Removed):
        names.pop(operation.path, None)


def _names(history: Sequence[Operation]) -> dict[Path, int | None]:
    names: dict[Path, int | None] = {}
    for each in history:
        _apply(names, each)
    return names


def _surviving_names(history: Sequence[Operation], draw: Random) -> dict[Path, int | None]:
    synced: dict[Path, int] = {}
    for index, each in enumerate(history):
        if isinstance(each, DirectorySynced):
            synced[each.path] = index
    share = draw.choice([0.0, 0.5, 1.0])
    names: dict[Path, int | None] = {}
    for index, each in enumerate(history):
        if isinstance(each, (Name, Removed)) and (
            index < synced.get(each.path.parent, -1) or draw.random() < share
        ):
            _apply(names, each)
    return names


def _versions(history: Sequence[Operation], file: int, since: int) -> list[bytes]:
    """The content that the disk has for sure, and all that the file had later."""
    versions = [b""]
    for index, each in enumerate(history):
        if isinstance(each, Content) and each.file == file:
            versions = [each.data] if index < since else [*versions, each.data]
    return versions


def _surviving(versions: list[bytes], draw: Random) -> bytes:
    size = len(draw.choice(versions))
    share = draw.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    found = bytearray(size)
    for start in range(0, size, SECTOR_BYTES):
        end = min(start + SECTOR_BYTES, size)
        whole = draw.random() < share
        version = versions[-1] if whole else draw.choice(versions)
        sector = version[start:end]
        found[start : start + len(sector)] = sector
    return bytes(found)


def _files(
    names: dict[Path, int | None], contents: dict[int, bytes], lost: Collection[Path] = ()
) -> Files:
    """The files, but for those below lost directories."""
    return {
        path: contents.get(file, b"")
        for path, file in names.items()
        if file is not None and not any(parent in lost for parent in path.parents)
    }


def put(files: Files, root: Path, into: Path) -> None:
    """Write the files below `root` into another directory, which is emptied first."""
    for path in sorted(into.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    for path, data in files.items():
        copy = into / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)


class FailAt:
    """Lets the operation with a number fail, and all that come after it if `forever`."""

    def __init__(self, at: int, number: int = errno.ENOSPC, *, forever: bool = True) -> None:
        self.at = at
        self.number = number
        self.forever = forever
        self.count = 0

    def __call__(self, operation: str) -> None:
        self.count += 1
        is_due = self.count > self.at if self.forever else self.count == self.at + 1
        if is_due and operation not in ("remove",):
            raise OSError(self.number, os.strerror(self.number))
