"""A cluster that outlives its process: what changes is written before it is acknowledged.

The file of a data directory begins with an image and goes on with changes (see `snapshot_files`).
Whatever a request changed is *flushed*, handed to the system, before any answer leaves: a process
that is killed loses nothing that was acknowledged. With `sync` answers also wait until the system
says that the disk has it, which then holds for a crash of the machine; one fsync serves all answers
that wait at the time, and is done in a thread, so that the cluster goes on meanwhile.

When what is out of date makes up most of the file, a new one is written aside, in a thread as well,
from an image whose bytes never change. What changed meanwhile is appended to it, and it takes the
old one's place by a rename.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from mockbroker.actors.config import ServerError
from mockbroker.actors.snapshot_files import (
    COMPACTED_FILE,
    DAMAGED_FILE,
    FILE,
    NEW_FILE,
    Found,
    begin_file,
    lock,
    put_in_place,
    read_directory,
    write_all,
)
from mockbroker.core.snapshot.changes import image_frames
from mockbroker.core.snapshot.recorder import Recorder

if TYPE_CHECKING:
    from mockbroker.actors.transport import Buffer, Transport
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.snapshot.image import ClusterImage

log = logging.getLogger("mockbroker")

# A file is written anew once it is this many times as long as that would make it.
SURPLUS_MAX = 4
COMPACTION_BYTES_MIN = 16 * 1024 * 1024
COPY_BYTES = 1 << 20


class DataDir:
    """One data directory, in use by this process until `close`. Raises ServerError from the start.

    `image` is the cluster that it holds, None for a directory that holds none yet. Damage is cut
    off when the caller has said so by `recover`; what was cut off by a crash is in any case.
    """

    def __init__(self, directory: Path, *, sync: bool = False, recover: bool = False) -> None:
        self.directory = directory
        self.sync = sync
        self.image: ClusterImage | None = None
        self._found: Found | None = None
        self._lock = lock(directory)
        self._fd = -1
        self.generation = 0  # how many files there have been
        self._size = 0
        self._size_when_new = 0
        self._synced = 0  # up to where the disk has the file
        self._recorder: Recorder | None = None
        self._wake = trio.lowlevel.ParkingLot()
        self._waiting = trio.lowlevel.ParkingLot()  # for the disk
        self._unsynced = trio.lowlevel.ParkingLot()  # the task that syncs, while there is nothing
        self._compaction = trio.lowlevel.ParkingLot()
        self._error: ServerError | None = None
        try:
            for left_over in (NEW_FILE, COMPACTED_FILE):
                (directory / left_over).unlink(missing_ok=True)
            if (directory / FILE).exists():
                self._read(recover=recover)
        except BaseException:
            self.close()
            raise

    def _read(self, *, recover: bool) -> None:
        self._found = found = read_directory(self.directory, recover=recover)
        path = self.directory / FILE
        if found.damage is not None:
            kept = path.replace(self.directory / DAMAGED_FILE)
            log.warning(
                "%s is damaged at byte %d: %s; %d bytes dropped, the whole file is kept as %s",
                path,
                found.damage.offset,
                found.damage.reason,
                found.file_bytes - found.end,
                kept,
            )
        elif found.end < found.file_bytes:
            log.warning("%s: cut off at byte %d, where the last write ended early", path, found.end)
        self.image = found.image

    # -- following a cluster -----------------------------------------------------------------------

    def follow(self, cluster: Cluster) -> None:
        """Keep `cluster`, which is what `image` says or a new one. Raises ServerError."""
        recorder = self._recorder = cluster.recorder = Recorder(cluster, self._changed)
        found, self._found, self.image = self._found, None, None
        if found is None or found.damage is not None:
            self._begin_file(recorder)
        else:
            self._go_on_with_file(recorder, found)

    def _go_on_with_file(self, recorder: Recorder, found: Found) -> None:
        path = self.directory / FILE
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.ftruncate(self._fd, found.end)
        except OSError as error:
            raise ServerError(f"cannot write {path}: {error.strerror}") from None
        recorder.resume(found.image)
        self._size = found.end
        self._size_when_new = sum(image.log.held_bytes for image in found.image.logs.values())

    def _changed(self) -> None:
        self._wake.unpark_all()

    def _begin_file(self, recorder: Recorder) -> None:
        new = self.directory / NEW_FILE
        fd, size = begin_file(new, image_frames(recorder.whole()))
        self._switch_to(new, fd, size)

    def _switch_to(self, path: Path, fd: int, size: int) -> None:
        put_in_place(path)
        self.generation += 1
        self._waiting.unpark_all()
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._size = self._size_when_new = self._synced = size

    def flush(self) -> bool:
        """Write what has changed; whether answers have to wait for the disk."""
        if self._error is not None:
            return True
        recorder = self._recorder
        assert recorder is not None
        try:
            if recorder.anew:
                self._begin_file(recorder)
            pieces = recorder.take()
            if pieces:
                self._size += write_all(self._fd, pieces)
                if self.sync:
                    self._unsynced.unpark_all()
                if self._is_long:
                    self._compaction.unpark_all()
        except OSError as error:
            self._fail(f"cannot write {self.directory / FILE}: {error.strerror}")
        except ServerError as error:
            self._fail(str(error))
        return self._error is not None or (self.sync and self._synced < self._size)

    def _fail(self, reason: str) -> None:
        """From now on nothing is acknowledged any more; the server ends."""
        self._error = ServerError(reason)
        self._wake.unpark_all()

    @property
    def _is_long(self) -> bool:
        return self._size > max(self._size_when_new * SURPLUS_MAX, COMPACTION_BYTES_MIN)

    async def durable(self) -> None:
        """Return once the disk has all that has been flushed so far, if that is wanted at all."""
        size = self._size
        while self._error is not None or (self.sync and self._synced < size <= self._size):
            await self._waiting.park()

    # -- tasks -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look after the file until cancelled. Raises ServerError when it cannot be written."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._flush_what_nobody_waits_for)
            nursery.start_soon(self._compact_when_long)
            if self.sync:
                nursery.start_soon(self._sync_what_is_written)

    async def _flush_what_nobody_waits_for(self) -> None:
        """Changes that no answer tells of, such as those that timers make."""
        while True:
            self.flush()
            if self._error is not None:
                raise self._error
            await self._wake.park()

    async def _sync_what_is_written(self) -> None:
        while True:
            while self._synced >= self._size:
                await self._unsynced.park()
            fd, size, generation = os.dup(self._fd), self._size, self.generation
            try:
                await trio.to_thread.run_sync(os.fsync, fd)
            except OSError as error:
                self._fail(f"cannot write {self.directory / FILE}: {error.strerror}")
                return
            finally:
                os.close(fd)
            if generation == self.generation:  # else it is another file by now
                self._synced = size
                self._waiting.unpark_all()

    # -- compaction --------------------------------------------------------------------------------

    async def _compact_when_long(self) -> None:
        while True:
            while not self._is_long:
                await self._compaction.park()
            await self._compact()

    async def _compact(self) -> None:
        """Write the file anew while changes go on to the old one, then copy those."""
        recorder = self._recorder
        assert recorder is not None
        # Nothing may come between: the image is what the file says up to here.
        self.flush()
        generation, begin = self.generation, self._size
        image = recorder.whole()
        path = self.directory / COMPACTED_FILE
        try:
            fd, size = await trio.to_thread.run_sync(lambda: begin_file(path, image_frames(image)))
            if generation != self.generation or recorder.anew:
                os.close(fd)  # meanwhile the cluster became another one, in a file of its own
                return
            size += self._copy_rest(fd, begin)
            self._switch_to(path, fd, size)
        except (OSError, ServerError) as error:
            log.warning("%s could not be compacted: %s", self.directory / FILE, error)
            self._size_when_new = self._size  # and not again before there is much more of it

    def _copy_rest(self, fd: int, begin: int) -> int:
        """Append what the file has from `begin` on to another one; how much that was."""
        copied = 0
        with (self.directory / FILE).open("rb") as old:
            old.seek(begin)
            while chunk := old.read(COPY_BYTES):
                copied += write_all(fd, [chunk])
        os.fsync(fd)
        return copied

    def close(self) -> None:
        """Write what is left, and let others have the directory. Idempotent."""
        if self._fd >= 0:
            if self._error is None:
                self.flush()
            os.close(self._fd)
            self._fd = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class DurableTransport:
    """Sends no answer before what it tells of is in the data directory."""

    __slots__ = ("_data_dir", "_inner")

    def __init__(self, inner: Transport, data_dir: DataDir) -> None:
        self._inner = inner
        self._data_dir = data_dir

    async def receive_into(self, view: memoryview, *, expect_data: bool = False) -> int:
        return await self._inner.receive_into(view, expect_data=expect_data)

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        if self._data_dir.flush():
            return parts
        return self._inner.send(parts)

    async def send_rest(self, parts: Sequence[Buffer]) -> None:
        self._data_dir.flush()  # again, for what has not been through `send`
        await self._data_dir.durable()
        await self._inner.send_rest(parts)

    def close(self, *, reset: bool = False) -> None:
        self._inner.close(reset=reset)
