"""The entries of a spool, and their format in a file: size and checksum, then MessagePack."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from mockbroker.core.journal.entries import Entry
from mockbroker.core.journal.journal import Gap
from mockbroker.core.journal.tracking import Tracking
from mockbroker.pipeline.past.image import CapturedImage
from mockbroker.pipeline.spool.redaction import redacted
from mockbroker.pipeline.store import StoreError
from mockbroker_protocol.types import Buffer

FORMAT = 8
HEADER = struct.Struct(">II")  # size of the entry, CRC-32 of it
ENTRY_BYTES_MAX = 1 << 30


class InitialTopic(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A topic at the start of a run; `leaders` are (leader, epoch) by partition."""

    name: str
    topic_id: str
    leaders: list[tuple[int, int]]


class RunStarted(msgspec.Struct, tag="begin", array_like=True, frozen=True, gc=False):
    """The first entry: the cluster at the start of the run, behind journal entry `last_seq`."""

    format: int
    run: str
    cluster_id: str
    virtual_ms: int
    real_ns: int
    last_seq: int
    topics: list[InitialTopic]
    tracked: list[Tracking] = []


class ClientIdentified(msgspec.Struct, tag="client", array_like=True, gc=False):
    """The client of connection `id`, with its properties known so far."""

    id: int
    client_host: str
    client_port: int
    listener: str
    principal: str
    software_name: str
    software_version: str


class RunEnded(msgspec.Struct, tag="end", array_like=True, frozen=True, gc=False):
    """The last entry of a run that was stopped cleanly, with the cluster as it is then."""

    last_seq: int
    virtual_ms: int
    real_ns: int
    image: CapturedImage | None = None


SpoolEntry: TypeAlias = RunStarted | Entry | ClientIdentified | Gap | RunEnded

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[SpoolEntry] = msgspec.msgpack.Decoder(SpoolEntry)


class Torn(NamedTuple):
    """The position of the first incomplete entry of a file, and the reason."""

    position: int
    reason: str


def encode(entry: SpoolEntry) -> bytes:
    """An entry without its secrets, after its size and checksum."""
    body = _encoder.encode(redacted(entry))
    return HEADER.pack(len(body), zlib.crc32(body)) + body


def decode(data: Buffer) -> Iterator[SpoolEntry | Torn]:
    """The entries of a file or of its rest; the last is a `Torn` if an entry is not complete."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        if len(view) - position < HEADER.size:
            yield Torn(position, "the file ends inside an entry's header")
            return
        size, checksum = HEADER.unpack_from(view, position)
        start = position + HEADER.size
        body = view[start : start + size]
        wrong = ""
        if size > ENTRY_BYTES_MAX:
            wrong = f"an entry of {size} bytes is too large"
        elif len(body) < size:
            wrong = "the file ends inside an entry"
        elif zlib.crc32(body) != checksum:
            wrong = "an entry's checksum is wrong"
        if wrong:
            yield Torn(position, wrong)
            return
        try:
            entry = _decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            yield Torn(position, f"an entry cannot be decoded: {error}")
            return
        yield entry
        position = start + size


def check_format(data: Buffer, name: str) -> None:
    """Raises StoreError if the first entry says that the file is of another format.

    It is decoded without its type, because another format may have other fields.
    """
    view = memoryview(data)
    if len(view) < HEADER.size:
        return
    size, checksum = HEADER.unpack_from(view)
    body = view[HEADER.size : HEADER.size + size]
    if len(body) < size or zlib.crc32(body) != checksum:
        return
    try:
        first = msgspec.msgpack.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(first, list) and first[:1] == ["begin"] and first[1:2] != [FORMAT]:
        raise StoreError(
            f"{name} has format {first[1] if len(first) > 1 else 'unknown'}, this mockbroker reads "
            f"{FORMAT}: use the mockbroker that wrote it"
        )


def whole(entries: Iterable[SpoolEntry | Torn]) -> Iterator[SpoolEntry]:
    """The entries without a `Torn`."""
    return (entry for entry in entries if not isinstance(entry, Torn))
