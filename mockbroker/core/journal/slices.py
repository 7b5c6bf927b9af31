"""A part of a journal for readers in other threads than the cluster's.

Entries never change, so a slice shares them. Taking one costs the cluster a copy of the references;
decoding takes the reader's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from mockbroker.core.journal.entries import (
    NO_ROOM,
    Entry,
    Raw,
    RequestEntry,
    ResponseEntry,
    answered,
    entry_of,
)
from mockbroker.core.journal.journal import ConnectedClient, Gap, Journal

# The bare tuples of answers, and the place of the request's number in them.
_ANSWERS = (answered, ResponseEntry)
_REQUEST_SEQ = 5
# The place of the request's header, or of the API's key.
_HEADER = 6


class JournalSlice:
    """Entries `first_seq` to `last_seq` of a journal, and what reading them needs.

    `outside` has requests from before the slice, for answers in it, and the `requested` entries.
    """

    def __init__(
        self,
        first_seq: int,
        entries: Sequence[Raw],
        connections: Mapping[int, ConnectedClient],
        former_topics: Mapping[bytes, str],
        topic_name: Callable[[bytes], str | None],
        outside: Mapping[int, Raw],
        requested: Sequence[int] = (),
    ) -> None:
        self.first_seq = first_seq
        self.connections = connections
        self.former_topics = former_topics
        self.topic_name = topic_name
        self._entries = entries
        self._outside = outside
        self._requested = requested

    @property
    def last_seq(self) -> int:
        """The number of the newest entry; one below `first_seq` without entries."""
        return self.first_seq + len(self._entries) - 1

    def __iter__(self) -> Iterator[Entry]:
        for seq, raw in enumerate(self._entries, self.first_seq):
            yield entry_of(raw, seq)

    def facts(self, apis: frozenset[int]) -> Iterator[Entry]:
        """The entries but requests and the answers of other APIs than these."""
        for seq, raw in enumerate(self._entries, self.first_seq):
            maker = raw[0]
            if maker is RequestEntry:
                continue
            if maker is answered:
                if raw[_HEADER].api_key not in apis:
                    continue
            elif maker is ResponseEntry and raw[_HEADER] not in apis:
                continue
            yield entry_of(raw, seq)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, seq: int) -> Entry | None:
        """As `Journal.entry`."""
        index = seq - self.first_seq
        if 0 <= index < len(self._entries):
            return entry_of(self._entries[index], seq)
        raw = self._outside.get(seq)
        return None if raw is None else entry_of(raw, seq)

    def requested(self) -> list[Entry]:
        """The requested entries from before the slice, as far as the journal has them."""
        found = [self.entry(seq) for seq in self._requested if seq < self.first_seq]
        return [entry for entry in found if entry is not None]

    def since(self, after: int = 0, limit: int | None = None) -> tuple[Gap | None, list[Entry]]:
        """As `Journal.since`."""
        first = self.first_seq
        gap = Gap(after + 1, first - 1, NO_ROOM) if after + 1 < first else None
        start = min(max(after + 1 - first, 0), len(self._entries))
        stop = None if limit is None else start + limit
        chosen = islice(self._entries, start, stop)
        return gap, [entry_of(raw, seq) for seq, raw in enumerate(chosen, first + start)]

    def connection(self, connection_id: int) -> ConnectedClient | None:
        """As `Journal.connection`."""
        return self.connections.get(connection_id)


def slice_of(
    journal: Journal,
    topic_name: Callable[[bytes], str | None],
    after: int = 0,
    until: int | None = None,
    requested: Sequence[int] = (),
) -> JournalSlice:
    """The entries behind number `after`, up to number `until`, with the requests of their answers
    and the `requested` entries. Called in the cluster's thread.
    """
    first, entries = journal.raw_since(after, until)
    wanted = {raw[_REQUEST_SEQ] for raw in entries if raw[0] in _ANSWERS and raw[_REQUEST_SEQ]}
    found = {seq: journal.raw(seq) for seq in (*requested, *(seq for seq in wanted if seq < first))}
    return JournalSlice(
        first,
        entries,
        journal.connections,
        dict(journal.former_topics),
        topic_name,
        {seq: raw for seq, raw in found.items() if raw is not None},
        sorted(requested),
    )
