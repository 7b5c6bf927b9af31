"""A cluster that outlives its process: its changes are written before they are acknowledged.

The file of a data directory begins with an image and continues with changes (see `snapshot_files`).
All changes are *flushed*, written to the system, before any response leaves: a killed process loses
nothing that was acknowledged. With `sync`, responses also wait for an fsync, so a crash of the
machine loses nothing either. One fsync, in a thread, serves all waiting responses.

A frame has all that changed since the one before, so wherever the file ends, the cluster is as it
was at one moment. Nothing in the directory changes until the stored cluster is running (`follow`).

When most of the file is out of date, a thread writes a new file from an image, whose bytes never
change. It copies the changes that are appended meanwhile, and the new file replaces the old one.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import trio

from mockbroker.core.snapshot.changes import image_frames
from mockbroker.core.snapshot.recorder import Recorder
from mockbroker.disk import DISK, Disk
from mockbroker.server.config import ServerError, StorageError
from mockbroker.server.storage.lock import Lock
from mockbroker.server.storage.snapshot_files import (
    COMPACTED_FILE,
    DAMAGED_FILE,
    FILE,
    NEW_FILE,
    Found,
    begin_file,
    read_directory,
)

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.snapshot.image import ClusterImage
    from mockbroker.server.network.transport import Buffer, Transport

log = logging.getLogger("mockbroker")

# A file is compacted once it is this many times as long as a new one.
SURPLUS_MAX = 4
COMPACTION_BYTES_MIN = 16 * 1024 * 1024
COPY_BYTES = 1 << 20


class DataDir:
    """One data directory, locked by this process until `close`. Raises ServerError.

    `image` is the stored cluster, None in a new directory. `recover` drops a damaged end of the
    file; an end that a crash kept from the disk is always dropped. A directory whose cluster was
    never followed is left as it was.
    """

    def __init__(
        self, directory: Path, *, sync: bool = False, recover: bool = False, disk: Disk = DISK
    ) -> None:
        self.directory = directory
        self.path = directory / FILE
        self.sync = sync
        self.image: ClusterImage | None = None
        self._disk = disk
        self._found: Found | None = None
        self._lock = Lock(directory, disk)
        self._fd = -1
        self._syncing = -1  # the descriptor that a thread syncs
        self.generation = 0  # how many files there have been
        self._size = 0
        self._size_when_new = 0
        self._synced = 0  # the synced length of the file
        self._recorder: Recorder | None = None
        self._wake = trio.lowlevel.ParkingLot()
        self._waiting = trio.lowlevel.ParkingLot()  # for an fsync
        self._unsynced = trio.lowlevel.ParkingLot()  # the syncing task, while it has nothing to do
        self._compaction = trio.lowlevel.ParkingLot()
        self._error: StorageError | None = None
        try:
            if self.path.exists():
                self._found = read_directory(directory, recover=recover, disk=disk)
                self.image = self._found.image
        except BaseException:
            self.close()
            raise

    # -- following a cluster -----------------------------------------------------------------------

    def follow(self, cluster: Cluster) -> None:
        """Write the changes of `cluster` from now on. It equals `image`, if there is one.

        Raises ServerError; then the directory is as it was.
        """
        recorder = Recorder(cluster, self._changed)
        cluster.record_with(recorder)
        found, self._found, self.image = self._found, None, None
        try:
            if found is None:
                self._begin_file(recorder)
            elif found.damage is not None:
                self._keep_damaged(recorder, found)
            else:
                self._go_on_with_file(recorder, found)
            for left_over in (NEW_FILE, COMPACTED_FILE):
                self._disk.remove(self.directory / left_over)
        except OSError as error:
            if found is None:
                with suppress(OSError):
                    self._disk.remove(self.path)
            raise ServerError(_cannot_write(self.path, error)) from None
        self._recorder = recorder

    def _keep_damaged(self, recorder: Recorder, found: Found) -> None:
        """Begin a new file; the damaged one keeps its content under another name."""
        assert found.damage is not None
        kept = self._unused(DAMAGED_FILE)
        self._disk.link(self.path, kept)
        try:
            self._begin_file(recorder)
        except BaseException:
            with suppress(OSError):
                self._disk.remove(kept)
            raise
        log.warning(
            "%s is damaged at byte %d: %s; %d bytes dropped, the whole file is kept as %s",
            self.path,
            found.damage.offset,
            found.damage.reason,
            found.file_bytes - found.end,
            kept,
        )

    def _unused(self, name: str) -> Path:
        numbered = (self.directory / f"{name}.{number}" for number in itertools.count(2))
        return next(
            path for path in itertools.chain([self.directory / name], numbered) if not path.exists()
        )

    def _go_on_with_file(self, recorder: Recorder, found: Found) -> None:
        self._fd = self._disk.resume(self.path)
        if found.end < found.file_bytes:
            log.warning(
                "%s: cut off at byte %d, where the last write ended early; %d bytes dropped",
                self.path,
                found.end,
                found.file_bytes - found.end,
            )
            self._disk.truncate(self._fd, found.end)
            # Dropped changes must not come back behind those that are written now.
            self._disk.sync(self._fd)
            self._synced = found.end
        recorder.resume(found.image)
        self._size = found.end
        self._size_when_new = sum(image.log.held_bytes for image in found.image.logs.values())

    def _changed(self) -> None:
        self._wake.unpark_all()

    def _begin_file(self, recorder: Recorder) -> None:
        new = self.directory / NEW_FILE
        fd, size = begin_file(self._disk, new, image_frames(recorder.full_image()))
        try:
            self._switch_to(new, fd, size)
        finally:
            self._discard(new, fd)

    def _switch_to(self, path: Path, fd: int, size: int) -> None:
        """Go on with another file, which has all and is synced.

        Raises OSError. If it is `_fd` then, nobody knows which file a crash would leave.
        """
        self._disk.rename(path, self.path)
        former, self._fd = self._fd, fd
        if former not in (-1, self._syncing):
            self._disk.close(former)
        self.generation += 1
        self._size = self._size_when_new = self._synced = size
        self._waiting.unpark_all()
        self._disk.sync_directory(self.directory)

    def _discard(self, path: Path, fd: int) -> None:
        """Remove a file that was not switched to."""
        if fd not in (-1, self._fd):
            self._disk.close(fd)
            with suppress(OSError):
                self._disk.remove(path)

    def flush(self) -> bool:
        """Write the changes; returns whether responses must wait for the disk."""
        if self._error is not None:
            return True
        recorder = self._recorder
        assert recorder is not None
        try:
            if recorder.needs_image:
                self._begin_file(recorder)
            self._append(recorder.take(self._synced))
        except (OSError, ServerError) as error:
            self._fail(_cannot_write(self.path, error))
        return self._error is not None or (self.sync and self._synced < self._size)

    def _append(self, pieces: list[bytes | memoryview]) -> None:
        if not pieces:
            return
        self._size += self._disk.write(self._fd, pieces)
        if self.sync:
            self._unsynced.unpark_all()
        if self._is_long:
            self._compaction.unpark_all()

    def _fail(self, reason: str) -> None:
        """Acknowledge nothing from now on; the server ends."""
        self._error = StorageError(
            f"{reason}; the cluster stops. Start it again when the disk can be written."
        )
        self._wake.unpark_all()

    @property
    def _is_long(self) -> bool:
        return self._size > max(self._size_when_new * SURPLUS_MAX, COMPACTION_BYTES_MIN)

    async def durable(self) -> None:
        """Return once everything that is flushed so far is safe; never after an error."""
        size = self._size
        while self._error is not None or (self.sync and self._synced < size <= self._size):
            await self._waiting.park()

    # -- tasks -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Flush, sync and compact until cancelled. Raises ServerError if writing fails."""
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
        while self._error is None:
            while self._synced >= self._size:
                await self._unsynced.park()
            fd, size, generation = self._fd, self._size, self.generation
            self._syncing = fd
            try:
                await trio.to_thread.run_sync(self._disk.sync, fd)
            except OSError as error:
                self._fail(_cannot_write(self.path, error))
            finally:
                self._syncing = -1
                if fd != self._fd:
                    self._disk.close(fd)
            if self._error is None and generation == self.generation:
                self._synced = size
                self._waiting.unpark_all()

    # -- compaction --------------------------------------------------------------------------------

    async def _compact_when_long(self) -> None:
        while self._error is None:
            if self._is_long:
                await self._compact()
            else:
                await self._compaction.park()

    async def _compact(self) -> None:
        """Write a new file while changes go to the old one, then copy these."""
        recorder = self._recorder
        assert recorder is not None
        # Without a checkpoint in between: the image equals the file up to here.
        self.flush()
        if self._error is not None:
            return
        generation, begin = self.generation, self._size
        image = recorder.full_image()
        path = self.directory / COMPACTED_FILE
        fd = -1

        def is_wanted() -> bool:
            """Not if the cluster was replaced meanwhile, in another file."""
            return (
                generation == self.generation and not recorder.needs_image and self._error is None
            )

        try:
            with self._disk.read(self.path) as old:
                fd, size = await trio.to_thread.run_sync(
                    lambda: begin_file(self._disk, path, image_frames(image))
                )
                rest = self._size - begin
                while is_wanted() and rest > COPY_BYTES:
                    await trio.to_thread.run_sync(self._copy, old, fd, begin, rest)
                    size, begin, former = size + rest, begin + rest, rest
                    rest = self._size - begin
                    if rest > former // 2:
                        break  # clients write about as fast as this copies
                if is_wanted():
                    # Everything waits for this last part, so that nothing is appended behind it.
                    self._copy(old, fd, begin, rest)
                    self._switch_to(path, fd, size + rest)
        except (OSError, ServerError) as error:
            if fd == self._fd:
                self._fail(_cannot_write(self.path, error))
                return
            log.warning("%s could not be compacted: %s", self.path, error)
            self._size_when_new = self._size  # the next attempt comes when it is much longer
        finally:
            self._discard(path, fd)

    def _copy(self, old: BinaryIO, fd: int, begin: int, size: int) -> None:
        """Append `size` bytes of the old file, from `begin` on, and sync them.

        Raises OSError, and ServerError if somebody has cut the file off.
        """
        old.seek(begin)
        while size:
            chunk = old.read(min(size, COPY_BYTES))
            if not chunk:
                raise ServerError(f"{self.path} lacks {size:,} bytes that were written to it")
            size -= self._disk.write(fd, [chunk])
        self._disk.sync(fd)

    def close(self) -> None:
        """Flush, sync, and unlock the directory. Idempotent."""
        if self._fd >= 0:
            if self._recorder is not None:
                self._end_file(self._recorder)
            self._disk.close(self._fd)
            self._fd = -1
        self._lock.release(undo=self._recorder is None)

    def _end_file(self, recorder: Recorder) -> None:
        """Let the disk have everything, and let the file say so."""
        self.flush()
        if self._error is not None:
            return
        try:
            self._disk.sync(self._fd)
            self._disk.write(self._fd, recorder.nothing_new(self._size))
        except OSError as error:
            log.warning("%s", _cannot_write(self.path, error))


def _cannot_write(path: Path, error: OSError | ServerError) -> str:
    return (
        str(error) if isinstance(error, ServerError) else f"cannot write {path}: {error.strerror}"
    )


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
        self._data_dir.flush()  # again, for parts that did not pass `send`
        await self._data_dir.durable()
        await self._inner.send_rest(parts)

    def close(self, *, reset: bool = False) -> None:
        self._inner.close(reset=reset)
