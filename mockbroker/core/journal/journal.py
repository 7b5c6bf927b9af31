"""The journal: a ring of entries, and its followers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from mockbroker.core.journal.entries import (
    CLEARED,
    ENTRY_BYTES,
    NO_ROOM,
    Entry,
    EventEntry,
    FactEntry,
    HopEntry,
    Raw,
    RequestEntry,
    ResponseEntry,
    answered,
    appended,
    entry_of,
)
from mockbroker.core.journal.reader_positions import Overflow, ReaderPositions
from mockbroker.core.journal.tracking import Tracking

if TYPE_CHECKING:
    from mockbroker.core.events import Event
    from mockbroker.core.replication.network import Hop
    from mockbroker_protocol.headers import RequestHeader
    from mockbroker_protocol.records import BatchHeader
    from mockbroker_protocol.types import Buffer

BYTES_MAX = 32 * 1024 * 1024
# A chunk of entries is removed as a whole. It is 2^-8 of the journal, or less if entries are
# large or the journal is small.
CHUNKS_SHIFT = 8
FEW_CHUNKS = 64


def record_bytes(message: object) -> int:
    """The bytes of the records in an answer to a Fetch."""
    return sum(
        len(piece)
        for topic in getattr(message, "responses", ())
        for partition in topic.partitions
        for piece in partition.records or ()
    )


class ConnectedClient(Protocol):
    """A client's connection, with its client's known properties."""

    id: int
    client_host: str
    client_port: int
    listener: str
    principal: str
    software_name: str
    software_version: str


class NamedTopic(Protocol):
    topic_id: bytes
    name: str


class Gap(msgspec.Struct, tag="gap", array_like=True, frozen=True, gc=False):
    """Entries from `first_seq` to `last_seq` that left the journal."""

    first_seq: int
    last_seq: int
    reason: str = NO_ROOM


def client_fields(connection: ConnectedClient) -> dict[str, Any]:
    """The client of a connection, by the names of an event's fields and of a table's columns."""
    return {
        "source": f"{connection.client_host}:{connection.client_port}",
        "client_software": f"{connection.software_name} {connection.software_version}",
        "listener": connection.listener,
        "principal": connection.principal,
    }


class Journal:
    """A bounded ring of entries, written in the cluster's thread.

    `bytes_max` bounds the bytes that entries hold or keep from being freed. The oldest entries are
    removed first; a reader gets a `Gap` for them. Sequence numbers begin at 1 and have no holes.
    `real_ns` returns real time (ns since the epoch); the times on the cluster's clock (ms since the
    epoch) are arguments. `overflow` says whether unread entries may be removed, see
    `reader_positions`. With `hops`, requests between brokers are sent as messages and journalled.
    """

    def __init__(
        self,
        real_ns: Callable[[], int],
        bytes_max: int = BYTES_MAX,
        overflow: Overflow = "drop",
        *,
        hops: bool = False,
    ) -> None:
        if bytes_max < 0:
            raise ValueError(f"a journal of {bytes_max} bytes cannot be")
        self.hops = hops
        self._bytes_max = bytes_max
        self._chunks: deque[tuple[int, int]] = deque()  # (entries, bytes) of the ended chunks
        self._ended = self._held = 0  # the entries and bytes of all of them
        self._chunk_bytes = self._room = bytes_max >> CHUNKS_SHIFT  # and of the newest chunk
        self.last_seq = self._cleared_seq = 0
        # The request that is being handled; 0 while a timer or an action runs. A handler call is
        # atomic, so whatever is written meanwhile comes from it.
        self.cause_seq = 0
        # Called with each written entry. Usually empty.
        self.followers: list[Callable[[Entry], None]] = []
        self.readers = ReaderPositions(overflow, self._make_room)
        # The names of deleted topics, by id, while entries from before the deletion have the ids.
        self.former_topics: dict[bytes, str] = {}
        self._deleted: deque[tuple[int, bytes]] = deque()  # (seq, topic id)
        # The identity of the records of a topic, by its name: see the action `track`.
        self.tracked: dict[str, Tracking] = {}
        self._real_ns = real_ns
        self._entries: deque[Raw] = deque()
        self._connections: dict[int, ConnectedClient] = {}
        self._closed: deque[tuple[int, int]] = deque()  # (seq, connection id)

    # -- writing -----------------------------------------------------------------------------------

    # Each Produce writes three entries. One more call would be a tenth of the cost.

    def request(self, now_ms: int, node_id: int, connection_id: int, frame: Buffer) -> int:
        """Write a request; returns its sequence number, for the answer."""
        seq = self.cause_seq = self.last_seq = self.last_seq + 1
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
        """Write an answer with a body of `size` bytes that no rule changed."""
        self.last_seq += 1
        self.cause_seq = 0
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
        topic_id: bytes,
        partition: int,
        leader_epoch: int,
        first_offset: int,
        header: BatchHeader,
        high_watermark: int,
    ) -> None:
        """Write an append of a client's batch to its leader's log; duplicates are not written."""
        self.last_seq += 1
        self._entries.append(
            (
                appended,
                now_ms,
                self._real_ns(),
                node_id,
                request_seq,
                topic,
                topic_id,
                partition,
                leader_epoch,
                first_offset,
                header,
                high_watermark,
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
        """Write an answer with `body`, or, without one, another `outcome`.

        `rules` are the fault rules that changed it. Returns the entry's sequence number.
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
            0 if self.cause_seq == request_seq else self.cause_seq,
        )
        if self.cause_seq == request_seq:
            self.cause_seq = 0
        return self._write(ResponseEntry, sum(map(len, body or ())), now_ms, *fields)

    def hop(self, now_ms: int, hop: Hop, request: msgspec.Struct) -> int:
        """Write a request between brokers; returns its sequence number."""
        about = hop.transactional_id
        key = int(hop.API)
        fields = (hop.sender, hop.receiver, key, hop.version, about, 0, request, "", ())
        return self._write(HopEntry, 0, now_ms, *fields)

    def hop_answer(
        self,
        now_ms: int,
        hop: Hop,
        request_seq: int,
        answer: msgspec.Struct | None,
        outcome: str = "",
        rules: tuple[str, ...] = (),
    ) -> None:
        """Write the answer to a broker's request; if it is None, `outcome` says why. `rules` are
        the fault rules that changed it.
        """
        about, key = hop.transactional_id, int(hop.API)
        fields = (hop.sender, hop.receiver, key, hop.version, about, request_seq, answer)
        self._write(HopEntry, record_bytes(answer), now_ms, *fields, outcome, rules)

    def event(self, event: Event) -> None:
        """Write an event of the cluster; an observer for `Runtime.on_event`."""
        size = len(getattr(event, "ranges", ""))
        self._write(EventEntry, size, event.at_ms, event, self.cause_seq)

    def topic_deleted(self, topic: NamedTopic) -> None:
        """Keep the name of a deleted topic; an observer for `Cluster.on_topic_deleted`."""
        self.former_topics[topic.topic_id] = topic.name
        self._deleted.append((self.last_seq, topic.topic_id))

    def fact(self, now_ms: int, kind: str, **facts: object) -> int:
        """Write another fact: `kind` is connection, fault, action or clock; `facts` must be
        immutable.
        """
        return self._write(FactEntry, 0, now_ms, kind, facts)

    def opened(self, now_ms: int, node_id: int, info: ConnectedClient) -> None:
        """Write a new connection. The client's fields are read when an entry is decoded."""
        self._connections[info.id] = info
        self.fact(now_ms, "connection", broker=node_id, connection=info.id, change="opened")

    def closed(self, now_ms: int, node_id: int, info: ConnectedClient, why: str) -> None:
        """Write the end of a connection; `why` names the side."""
        self.cause_seq = 0
        seq = self.fact(
            now_ms, "connection", broker=node_id, connection=info.id, change="closed", reason=why
        )
        self._closed.append((seq, info.id))

    def _write(self, maker: Callable[..., Entry], size: int, now_ms: int, *rest: Any) -> int:
        self.last_seq += 1
        self._entries.append((maker, now_ms, self._real_ns(), *rest))
        self._room -= size + ENTRY_BYTES
        if self._room < 0 or self.followers:
            self._written()
        return self.last_seq

    def _written(self) -> None:
        """Call the followers with the newest entry, and remove the oldest beyond the bytes."""
        if self.followers:
            entry = entry_of(self._entries[-1], self.last_seq)
            for follower in tuple(self.followers):
                follower(entry)
        if self._room < 0:
            self._end_chunk()

    def _end_chunk(self) -> None:
        """Begin another chunk of entries, and remove the oldest that exceed the bytes.

        Sizes are counted by chunk: a number for each entry would cost as much as a field.
        """
        entries, chunks = self._entries, self._chunks
        size = self._chunk_bytes - self._room
        chunks.append((len(entries) - self._ended, size))
        self._ended, self._held = len(entries), self._held + size
        spare = self._bytes_max >> CHUNKS_SHIFT
        self._forget(self._bytes_max - (spare if len(chunks) > FEW_CHUNKS else 0))
        self._chunk_bytes = self._room = min(spare, self._bytes_max - self._held)

    def _make_room(self) -> None:
        """Remove old entries that readers no longer need."""
        self._forget(self._bytes_max)

    def _forget(self, limit: int) -> None:
        """Remove the oldest chunks until at most `limit` bytes are held."""
        entries, chunks, readers = self._entries, self._chunks, self.readers
        while self._held > limit:
            count, size = chunks[0]
            last = self.first_seq + count - 1
            if readers.all and self._held <= 2 * self._bytes_max and readers.is_unread(last):
                break
            chunks.popleft()
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
        while self._deleted and self._deleted[0][0] < first:
            self.former_topics.pop(self._deleted.popleft()[1], None)

    def clear(self) -> None:
        """Remove all entries. The sequence continues, and followers stay."""
        self._cleared_seq = self.last_seq
        self._entries.clear()
        self._chunks.clear()
        self._ended = self._held = 0
        self._chunk_bytes = self._room = self._bytes_max >> CHUNKS_SHIFT
        self._make_room()
        for _, connection_id in self._closed:
            self._connections.pop(connection_id, None)
        self._closed.clear()
        self._deleted.clear()
        self.former_topics.clear()

    # -- reading -----------------------------------------------------------------------------------

    @property
    def bytes_max(self) -> int:
        """The bytes that entries may hold; a lower value removes the oldest at once."""
        return self._bytes_max

    @bytes_max.setter
    def bytes_max(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._end_chunk()

    @property
    def bytes(self) -> int:
        """The bytes that entries hold or keep from being freed."""
        return self._held + self._chunk_bytes - self._room

    @property
    def dropped(self) -> int:
        """The number of entries that were removed, by lack of room or by `clear`."""
        return self.first_seq - 1

    @property
    def first_seq(self) -> int:
        """The number of the oldest entry; one above `last_seq` without entries."""
        return self.last_seq + 1 - len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number; None if it was removed or is not written yet."""
        index = seq - self.first_seq
        return entry_of(self._entries[index], seq) if 0 <= index < len(self._entries) else None

    def since(self, after: int = 0, limit: int | None = None) -> tuple[Gap | None, list[Entry]]:
        """At most `limit` entries behind number `after`, and the gap before them, if any.

        Raises ValueError if `after` is negative.
        """
        if after < 0:
            raise ValueError(f"a journal is read from a number of at least 0, not {after}")
        first = self.first_seq
        reason = CLEARED if first - 1 <= self._cleared_seq else NO_ROOM
        gap = Gap(after + 1, first - 1, reason) if after + 1 < first else None
        count = len(self._entries)
        start = min(max(after + 1 - first, 0), count)
        stop = count if limit is None else min(start + limit, count)
        chosen = self._between(start, stop)
        return gap, [entry_of(raw, seq) for seq, raw in enumerate(chosen, first + start)]

    def _between(self, start: int, stop: int) -> list[Raw]:
        """The entries at these places, counted from the nearer end: a deque has no slices."""
        entries = self._entries
        count = len(entries)
        if start < count - stop:
            return list(islice(entries, start, stop))
        return list(islice(reversed(entries), count - stop, count - start))[::-1]

    def raw(self, seq: int) -> Raw | None:
        """The bare tuple of the entry with this number, as `entry`."""
        index = seq - self.first_seq
        return self._entries[index] if 0 <= index < len(self._entries) else None

    def raw_since(self, after: int, until: int | None = None) -> tuple[int, list[Raw]]:
        """The bare tuples of the entries behind number `after`, up to number `until`, and the
        number of the first. A reader in another thread makes the structs by `entry_of`.
        """
        first = self.first_seq
        count = len(self._entries)
        start = min(max(after + 1 - first, 0), count)
        stop = count if until is None else max(start, min(until + 1 - first, count))
        return first + start, self._between(start, stop)

    def connection(self, connection_id: int) -> ConnectedClient | None:
        """A connection by its id; None once it was removed with its entries."""
        return self._connections.get(connection_id)

    @property
    def connections(self) -> dict[int, ConnectedClient]:
        """The connections of the entries, by id; a copy."""
        return dict(self._connections)
