"""Following a journal, and writing it into a spool in a thread of its own.

The cluster's thread only puts entries into a queue. When the thread does not keep up and the queue
is full, entries are dropped and a note tells which (`overflow="gap"`), or the cluster waits
(`overflow="block"`, for tests).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from mockbroker.core.journal.entries import (
    ENTRY_BYTES,
    Entry,
    FactEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.pipeline.spool.notes import End, Lost, Note, Peer, packed
from mockbroker.pipeline.spool.taking import (
    INTRODUCTIONS,
    note_of,
    notes_of_memory,
    peer_note,
)
from mockbroker.pipeline.store import SPOOL, StoreError, check_run_name

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

Overflow = Literal["gap", "block"]

QUEUE_BYTES_MAX = 128 * 1024 * 1024
FILE_BYTES_MAX = 64 * 1024 * 1024
# How long the thread rests when there was nothing to do.
REST_S = 0.02
# What is written at one go. Writing lets the cluster's thread run, so that it waits for a fraction
# of a millisecond at most.
_WRITE_BYTES = 1 << 20
_WRITE_NOTES = 64
# Where they stand in their entries: this is called with everything that happens.
_FRAME, _BODY = RequestEntry._fields.index("frame"), ResponseEntry._fields.index("body")


class SpoolWriter:
    """Writes one cluster's journal into `<directory>/_spool/<run>/`: what it holds, and what comes.

    Make and `stop` it in the cluster's thread; `close` may then be called in any, and returns when
    all is written. `error` is what went wrong while writing, if anything did: a full disk must not
    end the cluster. Raises StoreError when the run is there already or the directory cannot be.
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
    ) -> None:
        if cluster.journal is None:
            raise StoreError("a cluster without a journal (journal_bytes=0) has nothing to write")
        self.path = directory / SPOOL / check_run_name(run)
        self.error: OSError | None = None
        self._journal = cluster.journal
        self._overflow: Overflow = overflow
        self._queue_bytes_max = queue_bytes_max
        self._file_bytes_max = file_bytes_max
        self._real_ns = real_ns
        self._now_ms = cluster.now_ms
        self._queue: deque[Entry | Note] = deque()
        # Bytes that came and that went: each is counted by one thread alone. More than so many may
        # not have come as long as no more have gone.
        self._came = self._went = 0
        self._came_max = queue_bytes_max
        self._lost_from = 0
        self._peers: dict[int, Peer] = {}
        self._hurry = threading.Event()
        self._room = threading.Event()
        self._stopping = False
        self._file: BinaryIO | None = None
        self._file_number = 0
        self._file_bytes = 0
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            raise StoreError(f"{directory} has a run {run} already: name another") from None
        except OSError as error:
            raise StoreError(f"cannot write into {directory}: {error.strerror}") from None
        self._queue.extend(notes_of_memory(cluster, self._journal, run, real_ns()))
        self._journal.followers.append(self._follow)
        self._thread = threading.Thread(target=self._work, name="mockbroker spool", daemon=True)
        self._thread.start()

    # -- in the cluster's thread -------------------------------------------------------------------

    def _follow(self, entry: Entry) -> None:
        kind = type(entry)
        fields: Any = entry
        if kind is RequestEntry:
            size = ENTRY_BYTES + len(fields[_FRAME])
        elif kind is ResponseEntry:
            size = ENTRY_BYTES
            for piece in fields[_BODY] or ():
                size += len(piece)
        else:
            size = ENTRY_BYTES
        came = self._came + size
        if came > self._came_max or self._lost_from:
            if not self._has_room(entry, came):
                return
            came = self._came + size
        self._came = came
        self._queue.append(entry)
        if kind is FactEntry:
            if fields.kind == "connection":
                fact = fields.fact
                self._introduce(fact["connection"], gone=fact["change"] == "closed")
        elif kind is ResponseEntry and fields.api_key in INTRODUCTIONS:
            self._introduce(fields.connection_id)

    def _introduce(self, connection_id: int, *, gone: bool = False) -> None:
        if gone:
            self._peers.pop(connection_id, None)
            return
        peer = self._journal.connection(connection_id)
        if peer is not None:
            note = peer_note(peer)
            if self._peers.get(connection_id) != note:
                self._peers[connection_id] = note
                self._queue.append(note)

    def _has_room(self, entry: Entry, came: int) -> bool:
        """Whether there is room for one more entry: wait for it, or else note what is lost."""
        self._hurry.set()
        if came > self._came_max:
            if self._overflow != "block":
                self._lost_from = self._lost_from or entry.seq
                return False
            while self._came - self._went > self._queue_bytes_max // 2 and self._thread.is_alive():
                self._room.clear()
                self._room.wait(REST_S)
        if self._lost_from:
            self._queue.append(Lost(self._lost_from, entry.seq - 1, _TOO_FAST))
            self._lost_from = 0
        return True

    def stop(self, *, in_peace: bool = True) -> None:
        """Follow no longer; `in_peace` says that the run is over and nothing is missing."""
        if self._stopping:
            return
        self._journal.followers.remove(self._follow)
        if self._lost_from:
            self._queue.append(Lost(self._lost_from, self._journal.last_seq, _TOO_FAST))
        if in_peace:
            self._queue.append(End(self._journal.last_seq, self._now_ms(), self._real_ns()))
        self._stopping = True
        self._hurry.set()

    # -- in any thread -----------------------------------------------------------------------------

    def close(self) -> None:
        """Wait until all that came before `stop` is in the files."""
        self._thread.join()

    # -- in the thread of the writer ---------------------------------------------------------------

    def _work(self) -> None:
        try:
            while True:
                stopping = self._stopping
                if not self._write_some():
                    if stopping:
                        break
                    self._hurry.clear()
                    self._hurry.wait(REST_S)
        finally:
            if self._file is not None:
                self._file.close()

    def _write_some(self) -> bool:
        """Write what is in the queue; False if nothing was."""
        queue = self._queue
        found: list[bytes] = []
        size = went = 0
        while queue and size < _WRITE_BYTES and len(found) < _WRITE_NOTES:
            item = queue.popleft()
            if isinstance(item, RequestEntry):
                went += ENTRY_BYTES + len(item.frame)
            elif isinstance(item, ResponseEntry):
                went += ENTRY_BYTES + sum(map(len, item.body or ()))
            elif isinstance(item, tuple):
                went += ENTRY_BYTES
            note = packed(note_of(item) if isinstance(item, tuple) else item)
            found.append(note)
            size += len(note)
        if not found:
            return False
        self._write(found, size)
        self._went += went
        self._came_max = self._went + self._queue_bytes_max
        self._room.set()
        return True

    def _write(self, notes: list[bytes], size: int) -> None:
        if self.error is not None:
            return
        try:
            if self._file is None or self._file_bytes >= self._file_bytes_max:
                self._next_file()
            assert self._file is not None
            self._file.writelines(notes)
            self._file.flush()
            self._file_bytes += size
        except OSError as error:
            self.error = error

    def _next_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = (self.path / f"{self._file_number:06}.spool").open("xb")
        self._file_number += 1
        self._file_bytes = 0


_TOO_FAST = "the spool could not be written fast enough"
