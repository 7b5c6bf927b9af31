"""Entries of the journal: bytes and numbers until they are read.

The journal stores an entry as a bare tuple, `(maker, fields…)`, because writing must be cheap.
`entry_of` makes the struct. A spool writes the same structs to disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mockbroker.core.events import AnyEvent
from mockbroker_protocol.records.batch import TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from mockbroker_protocol.headers import RequestHeader
    from mockbroker_protocol.records import BatchHeader
    from mockbroker_protocol.types import Buffer
else:
    Buffer = bytes  # msgspec decodes buffers of a spool to this type

# Why entries are missing.
NO_ROOM = "the journal had no room for it"
CLEARED = "the journal was cleared"

# The memory of an entry beside its bytes; measured on CPython 3.11.
ENTRY_BYTES = 400


class JournalEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An entry with its number and its times: the cluster's clock (ms) and real time (ns)."""

    seq: int
    virtual_ms: int
    real_ns: int

    def held_bytes(self) -> int:
        """The bytes that the entry holds or keeps from being freed."""
        return ENTRY_BYTES


class RequestEntry(JournalEntry, tag="request", frozen=True, gc=False):
    """A request: `frame` is its frame without the size."""

    node_id: int
    connection_id: int
    frame: Buffer

    def held_bytes(self) -> int:
        return ENTRY_BYTES + len(self.frame)


class ResponseEntry(JournalEntry, tag="response", frozen=True, gc=False):
    """The answer to request `request_seq`: its `body` in pieces, without the header.

    `body` is None where no answer was sent; `outcome` says why. `cause_seq` is the request whose
    handling completed a parked one; 0 if no other request did.
    """

    node_id: int
    connection_id: int
    request_seq: int
    api_key: int
    api_version: int
    correlation_id: int
    body: Sequence[Buffer] | None
    outcome: str
    rules: tuple[str, ...]
    cause_seq: int = 0

    def held_bytes(self) -> int:
        return ENTRY_BYTES + sum(map(len, self.body or ()))


class AppendEntry(JournalEntry, tag="append", frozen=True, gc=False):
    """A batch of request `request_seq` that was appended to a leader's log.

    `topic_id` is that of the log: a broker without the controller may append to a deleted topic.
    `high_watermark` is the partition's after the append.
    """

    node_id: int
    request_seq: int
    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int
    first_offset: int
    last_offset_delta: int
    records: int
    batch_bytes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    high_watermark: int

    @property
    def last_offset(self) -> int:
        return self.first_offset + self.last_offset_delta


class HopEntry(JournalEntry, tag="hop", frozen=True, gc=False):
    """A request of the broker `sender` to the broker `receiver`, or, with a `request_seq`, the
    answer to that request.

    `message` is the request or the answer; it is None without an answer, and `outcome` says why.
    `transactional_id` is that of the hop, if Kafka's request has no field for it.
    """

    sender: int
    receiver: int
    api_key: int
    api_version: int
    transactional_id: str
    request_seq: int
    message: Any
    outcome: str
    rules: tuple[str, ...]


class EventEntry(JournalEntry, tag="event", frozen=True, gc=False):
    """An event of the cluster. `cause_seq` is the request whose handling led to it; 0 for a timer
    or an action.
    """

    event: AnyEvent
    cause_seq: int = 0


class FactEntry(JournalEntry, tag="fact", frozen=True, gc=False):
    """Another fact: a connection, fault, action or change of the clock."""

    kind: str
    facts: dict[str, Any]


Entry: TypeAlias = RequestEntry | ResponseEntry | AppendEntry | HopEntry | EventEntry | FactEntry


def answered(
    seq: int,
    virtual_ms: int,
    real_ns: int,
    node_id: int,
    connection_id: int,
    request_seq: int,
    header: RequestHeader,
    body: Sequence[Buffer],
) -> ResponseEntry:
    """The entry of a sent answer that no rule changed."""
    return ResponseEntry(
        seq,
        virtual_ms,
        real_ns,
        node_id,
        connection_id,
        request_seq,
        header.api_key,
        header.api_version,
        header.correlation_id,
        body,
        "",
        (),
    )


def appended(
    seq: int,
    virtual_ms: int,
    real_ns: int,
    node_id: int,
    request_seq: int,
    topic: str,
    topic_id: bytes,
    partition: int,
    leader_epoch: int,
    first_offset: int,
    header: BatchHeader,
    high_watermark: int,
) -> AppendEntry:
    """The entry of a batch with this header."""
    return AppendEntry(
        seq,
        virtual_ms,
        real_ns,
        node_id,
        request_seq,
        topic,
        topic_id,
        partition,
        leader_epoch,
        first_offset,
        header.last_offset_delta,
        header.count,
        header.size,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        bool(header.attributes & TRANSACTIONAL_MASK),
        high_watermark,
    )


Raw: TypeAlias = tuple[Any, ...]


def entry_of(raw: Raw, seq: int) -> Entry:
    """The entry of the bare tuple with this number."""
    made: Entry = raw[0](seq, *raw[1:])
    return made
