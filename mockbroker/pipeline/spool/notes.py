"""The notes, and how they lie in a file: size and checksum, then MessagePack.

Frames of requests and bodies of answers stay the bytes that they were on the wire. Those that may
hold passwords, tokens or keys do not come here: of them the header is kept, and the errors.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

Buffer: TypeAlias = bytes | bytearray | memoryview

FORMAT = 1
HEAD = struct.Struct(">II")  # size of the note, CRC-32 of it
NOTE_BYTES_MAX = 1 << 30


class KnownTopic(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A topic that is there when a run begins; `leaders` are (leader, epoch) by partition."""

    name: str
    topic_id: str
    leaders: list[tuple[int, int]]


class Begin(msgspec.Struct, tag="begin", array_like=True, frozen=True, gc=False):
    """The first note: which cluster this is, and what it was like."""

    format: int
    run: str
    cluster_id: str
    virtual_ms: int
    real_ns: int
    last_seq: int
    topics: list[KnownTopic]


class Asked(msgspec.Struct, tag="asked", array_like=True, frozen=True, gc=False):
    """A request; `frame` is all of it but its size, or only its header when that is `hidden`."""

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    connection_id: int
    frame: bytes
    hidden: bool = False


class Answered(msgspec.Struct, tag="answered", array_like=True, frozen=True, gc=False):
    """What became of a request: see `ResponseEntry`. `errors` is there when the body is hidden."""

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    connection_id: int
    request_seq: int
    api_key: int
    api_version: int
    correlation_id: int
    body: list[bytes] | None
    outcome: str
    rules: list[str]
    errors: list[str] | None = None


class Appended(msgspec.Struct, tag="appended", array_like=True, frozen=True, gc=False):
    """A batch in the log of its leader: see `AppendEntry`."""

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


class Fact(msgspec.Struct, tag="fact", array_like=True, frozen=True, gc=False):
    """Anything else: `kind` "event" is one of the cluster's, of class `name`."""

    seq: int
    virtual_ms: int
    real_ns: int
    kind: str
    name: str
    fact: dict[str, Any]


class Peer(msgspec.Struct, tag="peer", array_like=True, frozen=True, gc=False):
    """Who is at the other end of a connection, as far as is known by now."""

    connection_id: int
    host: str
    port: int
    principal: str
    software: str


class Lost(msgspec.Struct, tag="lost", array_like=True, frozen=True, gc=False):
    """Entries that are missing here, the first and last of them, and why."""

    first_seq: int
    last_seq: int
    reason: str


class End(msgspec.Struct, tag="end", array_like=True, frozen=True, gc=False):
    """The last note of a run that ended in peace."""

    last_seq: int
    virtual_ms: int
    real_ns: int


Note: TypeAlias = Begin | Asked | Answered | Appended | Fact | Peer | Lost | End

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Note)


class Torn(NamedTuple):
    """Where a file stops making sense: the position of the first note that is not whole."""

    position: int
    reason: str


def packed(note: Note) -> bytes:
    """A note with its head."""
    body = _encoder.encode(note)
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def unpacked(data: Buffer, position: int = 0) -> Iterator[Note | Torn]:
    """The notes from `position` on; a `Torn` comes last if something is left over."""
    view = memoryview(data)
    while position < len(view):
        if len(view) - position < HEAD.size:
            yield Torn(position, "the file ends inside a note's head")
            return
        size, checksum = HEAD.unpack_from(view, position)
        begin = position + HEAD.size
        if size > NOTE_BYTES_MAX:
            yield Torn(position, f"a note of {size} bytes cannot be")
            return
        if begin + size > len(view):
            yield Torn(position, "the file ends inside a note")
            return
        body = view[begin : begin + size]
        if zlib.crc32(body) != checksum:
            yield Torn(position, "a note's checksum is wrong")
            return
        try:
            note = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            yield Torn(position, f"a note cannot be read: {error}")
            return
        yield note
        position = begin + size


def as_facts(fact: object) -> tuple[str, dict[str, Any]]:
    """The name and the fields of a cluster's event, or of facts told as a mapping."""
    if isinstance(fact, msgspec.Struct):
        names = fact.__struct_fields__
        return type(fact).__name__, {name: getattr(fact, name) for name in names}
    return "", dict(fact) if isinstance(fact, Mapping) else {}


def pieces(body: Sequence[Buffer] | None) -> list[Any] | None:
    """The pieces of an answer, as a note holds them."""
    return None if body is None else list(body)
