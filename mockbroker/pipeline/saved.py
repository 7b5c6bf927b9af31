"""A saved journal: the entries of a run in memory, for readers that have no cluster.

A file is what `GET /v1/journal/entries` returns; a directory is that of `serve --journal-dir`, or
one spool in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mockbroker.core.events import TopicsChanged
from mockbroker.core.ids import uuid_from_text
from mockbroker.core.journal.entries import (
    NO_ROOM,
    Entry,
    EventEntry,
    JournalEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.journal import Gap
from mockbroker.core.journal.reader_positions import ReaderPositions
from mockbroker.pipeline.past.image import CapturedImage
from mockbroker.pipeline.spool.format import (
    ClientIdentified,
    RunEnded,
    RunStarted,
    SpoolEntry,
    Torn,
    check_format,
    decode,
)
from mockbroker.pipeline.spool.reader import SpoolReader, spool_path, spooled_runs
from mockbroker.pipeline.store import RUNS, StoreError


class SavedJournal:
    """The journal of a run that is over, as its readers see the one of a running cluster.

    `torn` says where its file breaks off; empty if it is whole.
    """

    def __init__(self, entries: Iterable[SpoolEntry], name: str, torn: str = "") -> None:
        """Raises StoreError if the entries do not begin a run."""
        self.run = list(entries)
        self.name = name
        self.torn = torn
        if not self.run or not isinstance(self.run[0], RunStarted):
            raise StoreError(f"{name} is no journal: its first entry is missing")
        self.started: RunStarted = self.run[0]
        self._entries: list[Entry] = []
        self._seqs: list[int] = []
        self.former_topics: dict[bytes, str] = {}
        self._topics = {uuid_from_text(topic.topic_id): topic.name for topic in self.started.topics}
        self.connections: dict[int, ClientIdentified] = {}
        self._gaps: list[Gap] = []
        self.tracked = {each.topic: each for each in self.started.tracked}
        self.ended_ms = self.started.virtual_ms
        self.bytes = 0
        # The cluster at the end; None if the run was not stopped cleanly.
        self.image: CapturedImage | None = None
        for entry in self.run:
            self._take(entry)
        # A reader may follow it as it follows a running one, and gets no news.
        self.followers: list[Callable[[Entry], None]] = []
        self.readers = ReaderPositions("drop", lambda: None)

    def _take(self, entry: SpoolEntry) -> None:
        if isinstance(entry, JournalEntry):
            self._entries.append(entry)
            self._seqs.append(entry.seq)
            self.bytes += entry.held_bytes()
            self.ended_ms = max(self.ended_ms, entry.virtual_ms)
            if isinstance(entry, EventEntry) and isinstance(entry.event, TopicsChanged):
                for topic in entry.event.created:
                    self._topics[uuid_from_text(topic.topic_id)] = topic.topic
                for topic in entry.event.deleted:
                    self.former_topics[uuid_from_text(topic.topic_id)] = topic.topic
        elif isinstance(entry, ClientIdentified):
            self.connections[entry.id] = entry
        elif isinstance(entry, Gap):
            self._gaps.append(entry)
        elif isinstance(entry, RunEnded):
            self.ended_ms = entry.virtual_ms
            self.image = entry.image

    # -- as `core.journal.journal.Journal` ---------------------------------------------------------

    @property
    def bytes_max(self) -> int:
        """It has what it has."""
        return self.bytes

    @property
    def dropped(self) -> int:
        """The number of entries that are missing, from number 1 on."""
        return self.last_seq - len(self)

    @property
    def first_seq(self) -> int:
        """The number of the oldest entry; one above `last_seq` without entries."""
        return self._seqs[0] if self._seqs else self.last_seq + 1

    @property
    def last_seq(self) -> int:
        """The number of the newest entry."""
        return self._seqs[-1] if self._seqs else self.started.last_seq

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number; None if it is not among the saved ones."""
        index = bisect_left(self._seqs, seq)
        known = index < len(self._seqs) and self._seqs[index] == seq
        return self._entries[index] if known else None

    def since(self, after: int = 0, limit: int | None = None) -> tuple[Gap | None, list[Entry]]:
        """At most `limit` entries behind number `after` up to the next gap, and the gap before
        them, if any. Raises ValueError if `after` is negative.
        """
        if after < 0:
            raise ValueError(f"a journal is read from a number of at least 0, not {after}")
        start = bisect_right(self._seqs, after)
        stop = len(self._seqs) if limit is None else min(start + limit, len(self._seqs))
        if start == stop:
            return None, []
        first = self._seqs[start]
        gap = Gap(after + 1, first - 1, self._why(first)) if first > after + 1 else None
        # Numbers without a hole lie as far apart as their places.
        if self._seqs[stop - 1] - first != stop - 1 - start:
            stop = next(
                at for at in range(start + 1, stop) if self._seqs[at] != self._seqs[at - 1] + 1
            )
        return gap, self._entries[start:stop]

    def _why(self, first: int) -> str:
        return next((gap.reason for gap in self._gaps if gap.last_seq == first - 1), NO_ROOM)

    def part(self, after: int, until: int) -> SavedPart:
        """The entries behind number `after`, up to number `until`."""
        start, stop = bisect_right(self._seqs, after), bisect_right(self._seqs, until)
        return SavedPart(self, after, self._entries[start : max(start, stop)])

    def connection(self, connection_id: int) -> ClientIdentified | None:
        """A connection by its id; None if it is not known."""
        return self.connections.get(connection_id)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id."""
        return self._topics.get(topic_id)


class SavedPart:
    """A part of a saved journal, as `core.journal.slices.JournalSlice`."""

    def __init__(self, journal: SavedJournal, after: int, entries: list[Entry]) -> None:
        self._entries = entries
        self.first_seq = entries[0].seq if entries else after + 1
        self.last_seq = entries[-1].seq if entries else after
        self.former_topics = journal.former_topics
        self.connections = journal.connections
        self.topic_name = journal.topic_name
        # Another thread may read the whole journal, because it never changes.
        self.entry = journal.entry
        self.since = journal.since
        self.connection = journal.connection

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def facts(self, apis: frozenset[int]) -> Iterator[Entry]:
        """As `JournalSlice.facts`."""
        for entry in self._entries:
            if isinstance(entry, ResponseEntry):
                if entry.api_key in apis:
                    yield entry
            elif not isinstance(entry, RequestEntry):
                yield entry

    def __len__(self) -> int:
        return len(self._entries)

    def requested(self) -> list[Entry]:
        """None: there is no cluster with requests in progress."""
        return []


def open_journal(path: Path) -> SavedJournal:
    """The journal in a file or directory. A file that breaks off is read up to there.

    Raises StoreError if there is none, if nothing of it can be read, if it is of another format, or
    if a directory has several.
    """
    if path.is_dir():
        return _of_directory(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    entries: list[SpoolEntry] = []
    torn = ""
    check_format(data, str(path))
    for entry in decode(data):
        if isinstance(entry, Torn):
            torn = f"{path.name} at byte {entry.position}: {entry.reason}"
        else:
            entries.append(entry)
    if not entries:
        raise StoreError(
            f"{path} is no journal of mockbroker: {torn or 'it is empty'}; "
            "`mockbroker journal save FILE` writes one"
        )
    return SavedJournal(entries, path.name, torn)


def _of_directory(path: Path) -> SavedJournal:
    if not any(path.glob("*.spool")):
        runs = spooled_runs(path)
        if len(runs) > 1:
            raise StoreError(f"{path} has spools of several runs: give one of them as a directory")
        if not runs and (path / RUNS).is_dir():
            raise StoreError(
                f"{path} has tables only: the console reads entries, which "
                "`mockbroker journal save FILE` writes"
            )
        if not runs:
            raise StoreError(f"{path} has no journal: give a file or the directory of a spool")
        path = spool_path(path, runs[0])
    reader = SpoolReader(path)
    entries = list(reader)
    return SavedJournal(entries, path.name, reader.torn)
