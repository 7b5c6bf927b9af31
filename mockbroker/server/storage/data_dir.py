"""A cluster that outlives its process: its changes are written before they are acknowledged.

The file of a data directory begins with an image and continues with changes (see `snapshot_files`).
All changes are *flushed*, written to the system, before any response leaves: a killed process loses
nothing that was acknowledged. With `sync`, responses also wait for an fsync, so a crash of the
machine loses nothing either. One fsync, in a thread, serves all responses that wait at the time.

When most of the file is out of date, a thread writes a new file from an image, whose bytes never
change. The changes made meanwhile are appended, and the new file is renamed to the old one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from mockbroker.core.snapshot.changes import image_frames
from mockbroker.core.snapshot.recorder import Recorder
from mockbroker.server.config import ServerError
from mockbroker.server.storage.snapshot_files import (
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

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.snapshot.image import ClusterImage
    from mockbroker.server.network.transport import Buffer, Transport

log = logging.getLogger("mockbroker")

# A file is compacted once it is this many times as long as when it was new.
SURPLUS_MAX = 4
COMPACTION_BYTES_MIN = 16 * 1024 * 1024
COPY_BYTES = 1 << 20


class DataDir:
    """One data directory, locked by this process until `close`. Raises ServerError.

    `image` is the stored cluster, None in a new directory. `recover` drops a damaged end of the
    file; a last write that a crash cut off is always dropped.
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
        self._waiting = trio.lowlevel.ParkingLot()  # for an fsync
        self._unsynced = trio.lowlevel.ParkingLot()  # the task that syncs, while all is synced
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
        """Write the changes of `cluster` from now on. It equals `image`, if there is one.

        Raises ServerError.
        """
        recorder = self._recorder = Recorder(cluster, self._changed)
        cluster.record_with(recorder)
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
        """Write the changes; returns whether responses must wait for the disk."""
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
        """Acknowledge nothing from now on; the server ends."""
        self._error = ServerError(reason)
        self._wake.unpark_all()

    @property
    def _is_long(self) -> bool:
        return self._size > max(self._size_when_new * SURPLUS_MAX, COMPACTION_BYTES_MIN)

    async def durable(self) -> None:
        """With `sync`, return once the disk has everything that is flushed so far."""
        size = self._size
        while self._error is not None or (self.sync and self._synced < size <= self._size):
            await self._waiting.park()

    # -- tasks -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Flush, sync and compact until cancelled. Raises ServerError when writing fails."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._flush_unacknowledged)
            nursery.start_soon(self._compact_when_long)
            if self.sync:
                nursery.start_soon(self._sync)

    async def _flush_unacknowledged(self) -> None:
        """Flush the changes that no response acknowledges, such as those of timers."""
        while True:
            self.flush()
            if self._error is not None:
                raise self._error
            await self._wake.park()

    async def _sync(self) -> None:
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
        """Write a new file while changes go to the old one, then copy these."""
        recorder = self._recorder
        assert recorder is not None
        # Without a checkpoint in between: the image equals the file up to here.
        self.flush()
        generation, begin = self.generation, self._size
        image = recorder.whole()
        path = self.directory / COMPACTED_FILE
        try:
            fd, size = await trio.to_thread.run_sync(lambda: begin_file(path, image_frames(image)))
            if generation != self.generation or recorder.anew:
                os.close(fd)  # the cluster was replaced meanwhile, in another file
                return
            size += self._copy_rest(fd, begin)
            self._switch_to(path, fd, size)
        except (OSError, ServerError) as error:
            log.warning("%s could not be compacted: %s", self.directory / FILE, error)
            self._size_when_new = self._size  # the next attempt comes when it is much longer

    def _copy_rest(self, fd: int, begin: int) -> int:
        """Append the file from `begin` on to another one; returns the bytes copied."""
        copied = 0
        with (self.directory / FILE).open("rb") as old:
            old.seek(begin)
            while chunk := old.read(COPY_BYTES):
                copied += write_all(fd, [chunk])
        os.fsync(fd)
        return copied

    def close(self) -> None:
        """Flush, and unlock the directory. Idempotent."""
        if self._fd >= 0:
            if self._error is None:
                self.flush()
            os.close(self._fd)
            self._fd = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class DurableTransport:
    """Sends no response before the changes are in the data directory."""

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
        self._data_dir.flush()  # again, for parts that have not been through `send`
        await self._data_dir.durable()
        await self._inner.send_rest(parts)

    def close(self, *, reset: bool = False) -> None:
        self._inner.close(reset=reset)
