"""What the broker writes down, before anybody has looked at it.

Entries hold numbers, text and bytes only where they can, so that a journal of a hundred thousand of
them costs the garbage collector little. They are written as bare tuples, `(maker, fields…)`,
because writing is what costs; reading makes them what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mockbroker_protocol.records.batch import TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from mockbroker_protocol.headers import RequestHeader
    from mockbroker_protocol.records import BatchHeader

Buffer: TypeAlias = bytes | bytearray | memoryview

# What an entry costs beside the bytes it refers to; measured on CPython 3.11.
ENTRY_BYTES = 400


class RequestEntry(NamedTuple):
    """A request as it came: `frame` is all of it but its size."""

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    connection_id: int
    frame: Buffer


class ResponseEntry(NamedTuple):
    """What became of request `request_seq`: the answer's `body` without its header, in pieces; or
    `body` is None and `outcome` says why there is no answer.
    """

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    connection_id: int
    request_seq: int
    api_key: int
    api_version: int
    correlation_id: int
    body: Sequence[Buffer] | None
    outcome: str
    rules: tuple[str, ...]


class AppendEntry(NamedTuple):
    """A batch of request `request_seq` that was appended to a leader's log."""

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    request_seq: int
    topic: str
    partition: int
    first_offset: int
    last_offset_delta: int
    records: int
    batch_bytes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool


class FactEntry(NamedTuple):
    """Anything else: an event of the cluster (a struct), or a fact told as a mapping."""

    seq: int
    virtual_ms: int
    real_ns: int
    kind: str
    fact: object


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
    """The entry of an answer that went out, and that no rule has touched."""
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
    partition: int,
    first_offset: int,
    header: BatchHeader,
) -> AppendEntry:
    """The entry of a batch with this header."""
    return AppendEntry(
        seq,
        virtual_ms,
        real_ns,
        node_id,
        request_seq,
        topic,
        partition,
        first_offset,
        header.last_offset_delta,
        header.count,
        header.size,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        bool(header.attributes & TRANSACTIONAL_MASK),
    )


Entry: TypeAlias = RequestEntry | ResponseEntry | AppendEntry | FactEntry
Raw: TypeAlias = tuple[Any, ...]


def entry_of(raw: Raw, seq: int) -> Entry:
    """What the bare tuple with this number stands for."""
    made: Entry = raw[0](seq, *raw[1:])
    return made
