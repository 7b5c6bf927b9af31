"""The ring that holds the entries, and who follows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mockbroker.core.journal.entries import (
    ENTRY_BYTES,
    Buffer,
    Entry,
    FactEntry,
    Raw,
    RequestEntry,
    ResponseEntry,
    answered,
    appended,
    entry_of,
)
from mockbroker.core.journal.following import Overflow, Readers

if TYPE_CHECKING:
    from mockbroker.core.events import Event
    from mockbroker_protocol.headers import RequestHeader
    from mockbroker_protocol.records import BatchHeader

BYTES_MAX = 32 * 1024 * 1024
# A stretch of entries, which is forgotten as a whole, is 2^-8 of the journal. Where there are few,
# because entries are large or the journal is small, no more is made free than what is needed.
STRETCHES_SHIFT = 8
FEW_STRETCHES = 64


class Peer(Protocol):
    """A client at the other end of a connection, as far as it has told who it is."""

    id: int
    client_host: str
    client_port: int
    principal: str
    software_name: str
    software_version: str


class NamedTopic(Protocol):
    topic_id: bytes
    name: str


class Gap(NamedTuple):
    """Entries that were forgotten before a reader asked for them: [first, last]."""

    first: int
    last: int


class Journal:
    """A bounded record of what happened. Written in the cluster's thread.

    `bytes_max` bounds what its entries hold or keep from being freed; the oldest go first, and a
    reader that asks for them gets a `Gap`. Sequence numbers begin at 1, have no holes and are never
    used again. `real_ns` tells real time (ns since the epoch); times of the cluster's clock come
    with each entry (ms since the epoch). `overflow` says whether entries that a reader has not read
    yet may be forgotten as well: see `following`.
    """

    def __init__(
        self,
        real_ns: Callable[[], int],
        bytes_max: int = BYTES_MAX,
        overflow: Overflow = "drop",
    ) -> None:
        if bytes_max < 0:
            raise ValueError(f"a journal of {bytes_max} bytes cannot be")
        self._bytes_max = bytes_max
        self._stretches: deque[tuple[int, int]] = deque()  # (entries, bytes) of those that ended
        self._ended = self._held = 0  # the entries and bytes of those together
        self._stretch_bytes = self._room = bytes_max >> STRETCHES_SHIFT  # and of the newest
        self.last_seq = 0
        # Called with each entry once it is written, and misses none. As a rule there are none.
        self.followers: list[Callable[[Entry], None]] = []
        self.readers = Readers(overflow, self._make_room)
        # The names of topics that are gone, by id: entries may still speak of them.
        self.former_topics: dict[bytes, str] = {}
        self._real_ns = real_ns
        self._entries: deque[Raw] = deque()
        self._connections: dict[int, Peer] = {}
        self._closed: deque[tuple[int, int]] = deque()  # (seq, connection id)

    # -- writing -----------------------------------------------------------------------------------

    # The three of each Produce are written out at length: a call more would be a tenth of the cost.

    def request(self, now_ms: int, node_id: int, connection_id: int, frame: Buffer) -> int:
        """A request was read; returns its sequence number, which goes with the answer."""
        seq = self.last_seq = self.last_seq + 1
        self._entries.append((RequestEntry, now_ms, self._real_ns(), node_id, connection_id, frame))
        self._room -= len(frame) + ENTRY_BYTES
        if self._room < 0 or self.followers:
            self._written()
        return seq

    def answer(
        self,
        now_ms: int,
        node_id: int,
        connection_id: int,
        request_seq: int,
        header: RequestHeader,
        body: Sequence[Buffer],
        size: int,
    ) -> None:
        """A request was answered with a body of `size` bytes, and no rule had a hand in it."""
        self.last_seq += 1
        self._entries.append(
            (
                answered,
                now_ms,
                self._real_ns(),
                node_id,
                connection_id,
                request_seq,
                header,
                body,
            )
        )
        self._room -= size + ENTRY_BYTES
        if self._room < 0 or self.followers:
            self._written()

    def append(
        self,
        now_ms: int,
        node_id: int,
        request_seq: int,
        topic: str,
        partition: int,
        first_offset: int,
        header: BatchHeader,
    ) -> None:
        """A client's batch was appended to its leader's log; duplicates are not."""
        self.last_seq += 1
        self._entries.append(
            (
                appended,
                now_ms,
                self._real_ns(),
                node_id,
                request_seq,
                topic,
                partition,
                first_offset,
                header,
            )
        )
        self._room -= ENTRY_BYTES
        if self._room < 0 or self.followers:
            self._written()

    def response(
        self,
        now_ms: int,
        node_id: int,
        connection_id: int,
        request_seq: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
        body: Sequence[Buffer] | None,
        outcome: str = "",
        rules: tuple[str, ...] = (),
    ) -> int:
        """A request was answered with `body`, or came to another `outcome` where that is None.

        `rules` are those of a fault plan that had a hand in it. Returns its sequence number.
        """
        fields = (
            node_id,
            connection_id,
            request_seq,
            api_key,
            api_version,
            correlation_id,
            body,
            outcome,
            rules,
        )
        return self._write(ResponseEntry, sum(map(len, body or ())), now_ms, *fields)

    def event(self, event: Event) -> None:
        """Something happened to the cluster; an observer for `Cluster.on_event`."""
        self._fact(event.at_ms, "event", event, len(getattr(event, "ranges", "")))

    def topic_deleted(self, topic: NamedTopic) -> None:
        """Remember the name behind an id; an observer for `Cluster.on_topic_deleted`."""
        self.former_topics[topic.topic_id] = topic.name

    def fact(self, now_ms: int, kind: str, **facts: object) -> int:
        """Anything else worth a line: `kind` is one of the journal's (connection, fault, action,
        clock); the facts must be frozen.
        """
        return self._fact(now_ms, kind, facts)

    def opened(self, now_ms: int, node_id: int, info: Peer) -> None:
        """A client has connected. What is known of it is looked up when an entry is read."""
        self._connections[info.id] = info
        self.fact(now_ms, "connection", broker=node_id, connection=info.id, change="opened")

    def closed(self, now_ms: int, node_id: int, info: Peer, why: str) -> None:
        """A connection is over; `why` says who ended it."""
        seq = self.fact(
            now_ms, "connection", broker=node_id, connection=info.id, change="closed", reason=why
        )
        self._closed.append((seq, info.id))

    def _fact(self, now_ms: int, kind: str, fact: object, more_bytes: int = 0) -> int:
        return self._write(FactEntry, more_bytes, now_ms, kind, fact)

    def _write(self, maker: Callable[..., Entry], size: int, now_ms: int, *rest: Any) -> int:
        self.last_seq += 1
        self._entries.append((maker, now_ms, self._real_ns(), *rest))
        self._room -= size + ENTRY_BYTES
        if self._room < 0 or self.followers:
            self._written()
        return self.last_seq

    def _written(self) -> None:
        """Tell the followers of the newest entry, and forget the oldest that have no room."""
        if self.followers:
            entry = entry_of(self._entries[-1], self.last_seq)
            for follower in tuple(self.followers):
                follower(entry)
        if self._room < 0:
            self._end_stretch()

    def _end_stretch(self) -> None:
        """Begin another stretch of entries, and forget the oldest that are too much.

        Sizes are counted by stretch: a number kept with each entry would cost as much as a field.
        """
        entries, stretches = self._entries, self._stretches
        size = self._stretch_bytes - self._room
        stretches.append((len(entries) - self._ended, size))
        self._ended, self._held = len(entries), self._held + size
        spare = self._bytes_max >> STRETCHES_SHIFT
        self._forget(self._bytes_max - (spare if len(stretches) > FEW_STRETCHES else 0))
        self._stretch_bytes = self._room = min(spare, self._bytes_max - self._held)

    def _make_room(self) -> None:
        """A reader that the journal was full of wants less now."""
        self._forget(self._bytes_max)

    def _forget(self, limit: int) -> None:
        """Forget the oldest stretches, until no more than `limit` bytes are held."""
        entries, stretches, readers = self._entries, self._stretches, self.readers
        while self._held > limit:
            count, size = stretches[0]
            last = self.first_seq + count - 1
            if readers.all and self._held <= 2 * self._bytes_max and readers.want(last):
                break
            stretches.popleft()
            for _ in range(count):
                entries.popleft()
            self._ended -= count
            self._held -= size
        full = self._held > self._bytes_max
        if full is not readers.full:
            readers.set_full(full)
        first = self.first_seq
        while self._closed and self._closed[0][0] < first:
            self._connections.pop(self._closed.popleft()[1], None)

    def clear(self) -> None:
        """Forget all entries. The sequence goes on, and who follows goes on following."""
        self._entries.clear()
        self._stretches.clear()
        self._ended = self._held = 0
        self._stretch_bytes = self._room = self._bytes_max >> STRETCHES_SHIFT
        self._make_room()
        for _, connection_id in self._closed:
            self._connections.pop(connection_id, None)
        self._closed.clear()
        self.former_topics.clear()

    # -- reading -----------------------------------------------------------------------------------

    @property
    def bytes_max(self) -> int:
        """What the entries may take; the oldest have to go at once when it is made less."""
        return self._bytes_max

    @bytes_max.setter
    def bytes_max(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._end_stretch()

    @property
    def bytes(self) -> int:
        """What the entries hold, or keep from being freed."""
        return self._held + self._stretch_bytes - self._room

    @property
    def first_seq(self) -> int:
        """The oldest entry still there; one above `last_seq` when there is none."""
        return self.last_seq + 1 - len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number, or None when it is forgotten or yet to come."""
        index = seq - self.first_seq
        return entry_of(self._entries[index], seq) if 0 <= index < len(self._entries) else None

    def since(self, after: int = 0, limit: int | None = None) -> tuple[Gap | None, list[Entry]]:
        """The entries behind number `after`, at most `limit`, and the gap before them, if any.

        Raises ValueError when `after` is negative.
        """
        if after < 0:
            raise ValueError(f"a journal is read from a number of at least 0, not {after}")
        first = self.first_seq
        gap = Gap(after + 1, first - 1) if after + 1 < first else None
        start = max(after + 1 - first, 0)
        stop = None if limit is None else start + limit
        chosen = islice(self._entries, start, stop)
        return gap, [entry_of(raw, seq) for seq, raw in enumerate(chosen, first + start)]

    def connection(self, connection_id: int) -> Peer | None:
        """Who was at the other end, as known now; None when forgotten with its entries."""
        return self._connections.get(connection_id)

    def facts_of(self, entry: FactEntry) -> Mapping[str, object]:
        """The facts of an entry that was told as a mapping; empty for a cluster's event."""
        return entry.fact if isinstance(entry.fact, dict) else {}
