"""Follows a journal, and writes it into a spool in a thread of its own.

The cluster's thread only puts entries into a queue. When the queue is full, because the writer's
thread does not keep up, entries are dropped and a `Gap` is written in their place
(`overflow="gap"`), or the cluster waits (`overflow="block"`, for tests).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mockbroker.core.journal.entries import Entry, FactEntry, JournalEntry, ResponseEntry
from mockbroker.core.journal.journal import Gap
from mockbroker.disk import DISK, Disk
from mockbroker.pipeline.past.image import capture
from mockbroker.pipeline.spool.format import ClientIdentified, RunEnded, SpoolEntry, encode
from mockbroker.pipeline.spool.reader import spool_path
from mockbroker.pipeline.spool.run_entries import client_identified, run_until_now
from mockbroker.pipeline.store import StoreError, check_run_name
from mockbroker_protocol import ApiKey

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

log = logging.getLogger("mockbroker")

Overflow = Literal["gap", "block"]

QUEUE_BYTES_MAX = 128 * 1024 * 1024
FILE_BYTES_MAX = 64 * 1024 * 1024
# The wait of the thread when the queue is empty.
REST_S = 0.02
# The size of one write. The cluster's thread runs during a write, so it waits for a fraction of a
# millisecond at most.
_WRITE_BYTES = 1 << 20
_WRITE_ENTRIES = 64
# The answers with more data about their client.
_IDENTIFYING = frozenset((int(ApiKey.API_VERSIONS), int(ApiKey.SASL_AUTHENTICATE)))
_TOO_FAST = "the spool could not be written fast enough"


class SpoolWriter:
    """Writes one cluster's journal into `<directory>/_spool/<run>/`, past entries and new ones.

    Make and `stop` it in the cluster's thread; `close` may then be called in any, and returns when
    all is written, and on the disk. `error` is the first error of writing, after which nothing is
    written: a full disk must not end the cluster.
    Raises StoreError when the run exists, or when the directory cannot be made.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        run: str,
        *,
        overflow: Overflow = "gap",
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        file_bytes_max: int = FILE_BYTES_MAX,
        real_ns: Callable[[], int] = time.time_ns,
        disk: Disk = DISK,
    ) -> None:
        if cluster.runtime.journal is None:
            raise StoreError("a cluster without a journal (journal_bytes=0) has nothing to write")
        self.path = spool_path(directory, check_run_name(run))
        self.error: OSError | None = None
        self._cluster = cluster
        self._journal = cluster.runtime.journal
        self._overflow: Overflow = overflow
        self._queue_bytes_max = queue_bytes_max
        self._file_bytes_max = file_bytes_max
        self._real_ns = real_ns
        self._now_ms = cluster.runtime.now_ms
        self._queue: deque[SpoolEntry] = deque()
        # Bytes put into the queue and taken out, each counted by one thread alone, and the limit of
        # bytes that are put in before more are taken out.
        self._put_bytes = self._taken_bytes = 0
        self._put_bytes_max = queue_bytes_max
        self._first_lost_seq = 0
        self._clients: dict[int, ClientIdentified] = {}
        self._wake = threading.Event()
        self._room = threading.Event()
        self._stopping = False
        self._disk = disk
        self._fd = -1
        self._file_number = 0
        self._file_bytes = 0
        try:
            if self.path.exists():
                raise StoreError(f"{directory} has a run {run} already: name another")
            for made in disk.make_directory(self.path):
                disk.sync_directory(made.parent)
        except OSError as error:
            raise StoreError(f"cannot write into {directory}: {error.strerror}") from None
        self._queue.extend(run_until_now(cluster, self._journal, run, real_ns()))
        self._journal.followers.append(self._follow)
        self._thread = threading.Thread(target=self._work, name="mockbroker spool", daemon=True)
        self._thread.start()

    # -- in the cluster's thread -------------------------------------------------------------------

    def _follow(self, entry: Entry) -> None:
        put_bytes = self._put_bytes + entry.held_bytes()
        is_full = put_bytes > self._put_bytes_max or self._first_lost_seq
        if is_full and not self._has_room(entry, put_bytes):
            return
        self._put_bytes = put_bytes
        self._queue.append(entry)
        if isinstance(entry, ResponseEntry):
            if entry.api_key in _IDENTIFYING:
                self._identify(entry.connection_id)
        elif isinstance(entry, FactEntry) and entry.kind == "connection":
            if entry.facts["change"] == "closed":
                self._clients.pop(entry.facts["connection"], None)
            else:
                self._identify(entry.facts["connection"])

    def _identify(self, connection_id: int) -> None:
        connection = self._journal.connection(connection_id)
        if connection is not None:
            client = client_identified(connection)
            if self._clients.get(connection_id) != client:
                self._clients[connection_id] = client
                self._queue.append(client)

    def _has_room(self, entry: Entry, put_bytes: int) -> bool:
        """Whether the queue has room for an entry; if not, wait for it or count the entry lost."""
        self._wake.set()
        if put_bytes > self._put_bytes_max:
            if self._overflow != "block":
                self._first_lost_seq = self._first_lost_seq or entry.seq
                return False
            half = self._queue_bytes_max // 2
            while self._put_bytes - self._taken_bytes > half and self._thread.is_alive():
                self._room.clear()
                self._room.wait(REST_S)
        self._put_gap(entry.seq - 1)
        return True

    def _put_gap(self, last_seq: int) -> None:
        if self._first_lost_seq:
            self._queue.append(Gap(self._first_lost_seq, last_seq, _TOO_FAST))
            self._first_lost_seq = 0

    def stop(self, *, is_clean: bool = True) -> None:
        """Stop following; with `is_clean` the run is over and nothing is missing."""
        if self._stopping:
            return
        self._journal.followers.remove(self._follow)
        self._put_gap(self._journal.last_seq)
        if is_clean:
            image = capture(self._cluster)
            last_seq = self._journal.last_seq
            self._queue.append(RunEnded(last_seq, self._now_ms(), self._real_ns(), image))
        self._stopping = True
        self._wake.set()

    # -- in any thread -----------------------------------------------------------------------------

    def close(self) -> None:
        """Wait until all entries before `stop` are in the files."""
        self._thread.join()

    # -- in the thread of the writer ---------------------------------------------------------------

    def _work(self) -> None:
        try:
            while True:
                stopping = self._stopping
                if not self._write_some():
                    if stopping:
                        break
                    self._wake.clear()
                    self._wake.wait(REST_S)
            self._end_file()
        except OSError as error:
            self._fail(error)
        finally:
            if self._fd >= 0:
                self._disk.close(self._fd)

    def _write_some(self) -> bool:
        """Write entries of the queue; False if it is empty."""
        queue = self._queue
        found: list[bytes] = []
        size = taken_bytes = 0
        while queue and size < _WRITE_BYTES and len(found) < _WRITE_ENTRIES:
            entry = queue.popleft()
            if isinstance(entry, JournalEntry):
                taken_bytes += entry.held_bytes()
            encoded = encode(entry)
            found.append(encoded)
            size += len(encoded)
        if not found:
            return False
        self._write(found, size)
        self._taken_bytes += taken_bytes
        self._put_bytes_max = self._taken_bytes + self._queue_bytes_max
        self._room.set()
        return True

    def _write(self, entries: list[bytes], size: int) -> None:
        if self.error is not None:
            return
        try:
            if self._fd < 0 or self._file_bytes >= self._file_bytes_max:
                self._next_file()
            self._disk.write(self._fd, entries)
            self._file_bytes += size
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self.error is None:
            self.error = error
            log.warning(
                "cannot write %s: %s; the journal of this run ends here", self.path, error.strerror
            )

    def _next_file(self) -> None:
        self._end_file()
        self._fd = self._disk.begin(self.path / f"{self._file_number:06}.spool")
        self._disk.sync_directory(self.path)
        self._file_number += 1
        self._file_bytes = 0

    def _end_file(self) -> None:
        """Let the disk have the file, before there is another one."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
