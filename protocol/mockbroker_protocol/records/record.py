"""Records inside a batch: length-prefixed, with zig-zag varints and deltas to the batch's header.

    length varint | attributes i8 | timestamp delta varlong | offset delta varint
    | key length varint (-1 null), key | value length varint (-1 null), value
    | header count varint, each: key length varint, key | value length varint (-1 null), value

`scan_records` walks them without making objects of their contents; `iter_records` makes a `Record`
of each, one at a time. Both are as strict as Kafka's DefaultRecord: every length must fit exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from mockbroker_protocol.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    Buffer,
)
from mockbroker_protocol.records.compression import DECOMPRESSED_BYTES_MAX, decompress
from mockbroker_protocol.records.errors import InvalidRecordError, TooManyHeadersError

Header: TypeAlias = tuple[str, bytes | None]

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
HEADERS_MAX = 100_000
"""The headers of all records of a batch: 32 MiB have room for 16 million."""
# The smallest record: attributes, two deltas, null key, null value, no headers.
RECORD_LENGTH_MIN = 6


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record. `timestamp` is in ms since the epoch, -1 for none; a null key or value is None.

    Header keys that are no UTF-8 keep their bytes as surrogate escapes, so that nothing is lost.
    """

    offset: int = 0
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


class RecordSpan(msgspec.Struct, frozen=True, gc=False):
    """Where a record and its parts lie in a payload; key or value length -1 means null."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int
    headers: tuple[Header, ...]


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """A zig-zag varint of up to 5 bytes: (value, position after it).

    Raises `InvalidRecordError` for more bytes or a truncated value. Bits beyond the 32nd are
    dropped, as Java's int does.
    """
    if pos + 1 < len(data):  # by far the most take one byte or two
        low = data[pos]
        if low < 0x80:
            return (low >> 1) ^ -(low & 1), pos + 1
        high = data[pos + 1]
        if high < 0x80:
            return (low & 0x7F | high << 7) >> 1 ^ -(low & 1), pos + 2
    return _zig_zag(data, pos, VARINT_BYTES_MAX, 0xFFFFFFFF)


def read_varlong(data: bytes, pos: int) -> tuple[int, int]:
    """A zig-zag varlong of up to 10 bytes; otherwise like `read_varint`."""
    return _zig_zag(data, pos, VARLONG_BYTES_MAX, 0xFFFFFFFFFFFFFFFF)


def _zig_zag(data: bytes, pos: int, bytes_max: int, mask: int) -> tuple[int, int]:
    value = shift = 0
    end = pos + bytes_max
    at = pos
    size = len(data)
    while True:
        if at >= size:
            raise InvalidRecordError(at, "the payload ends inside a varint")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= mask
            return (value >> 1) ^ -(value & 1), at
        if at == end:
            raise InvalidRecordError(pos, f"a varint of more than {bytes_max} bytes")
        shift += 7


def write_varint(out: bytearray, value: int) -> None:
    """Append `value` (up to 64 bits, signed) as a zig-zag varint."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _length(data: bytes, pos: int, end: int, what: str) -> tuple[int, int]:
    """A length and where its bytes start, checked against the end of the record.

    Any negative length counts as null, as in Kafka, and is returned as -1.
    """
    length, start = read_varint(data, pos)
    if start + length > end:
        raise InvalidRecordError(pos, f"{what} of {length} bytes, but {end - start} are left")
    return (length, start) if length >= 0 else (-1, start)


def _read_headers(data: bytes, pos: int, end: int, count: int) -> tuple[tuple[Header, ...], int]:
    headers: list[Header] = []
    for _ in range(count):
        length, start = _length(data, pos, end, "header key")
        if length < 0:
            raise InvalidRecordError(pos, "null header key")
        pos = start + length
        key = data[start:pos].decode("utf-8", "surrogateescape")
        length, start = _length(data, pos, end, "header value")
        if length < 0:
            headers.append((key, None))
            pos = start
        else:
            pos = start + length
            headers.append((key, data[start:pos]))
    return tuple(headers), pos


def _scan_record(data: bytes, start: int, headers_left: int) -> RecordSpan:
    """The record at `start`, with at most `headers_left` headers.

    One-byte varints, by far the most, are decoded in line.
    """
    byte = data[start]
    if byte < 0x80:
        length, pos = (byte >> 1) ^ -(byte & 1), start + 1
    else:
        length, pos = read_varint(data, start)
    if length < RECORD_LENGTH_MIN:
        raise InvalidRecordError(start, f"record length {length}, less than {RECORD_LENGTH_MIN}")
    end = pos + length
    if end > len(data):
        raise InvalidRecordError(
            start, f"a record of {length} bytes, but {len(data) - pos} are left"
        )
    pos += 1  # the record's own attributes, unused
    byte = data[pos]
    if byte < 0x80:
        timestamp_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
    else:
        timestamp_delta, pos = read_varlong(data, pos)
    byte = data[pos]
    if byte < 0x80:
        offset_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
    else:
        offset_delta, pos = read_varint(data, pos)
    key_length, key_start = _length(data, pos, end, "key")
    pos = key_start + key_length if key_length > 0 else key_start
    value_length, value_start = _length(data, pos, end, "value")
    pos = value_start + value_length if value_length > 0 else value_start
    headers: tuple[Header, ...] = ()
    if pos + 1 == end and data[pos] == 0:
        pos = end
    else:
        count, at = read_varint(data, pos)
        if count < 0 or count > end - at:
            raise InvalidRecordError(pos, f"header count {count}")
        if count > headers_left:
            raise TooManyHeadersError(pos, "a batch of too many headers")
        headers, pos = _read_headers(data, at, end, count)
        if pos != end:
            raise InvalidRecordError(
                start, f"record length {length}, but its fields take {length + pos - end} bytes"
            )
    return RecordSpan(
        start,
        end,
        timestamp_delta,
        offset_delta,
        key_start,
        key_length,
        value_start,
        value_length,
        headers,
    )


def scan_records(
    payload: bytes, count: int, *, headers_max: int = HEADERS_MAX
) -> Iterator[RecordSpan]:
    """Walk the `count` records of a decompressed payload, one at a time.

    Raises `InvalidRecordError` when there are fewer or more bytes than the records take, or when a
    record's own lengths disagree; `TooManyHeadersError` above `headers_max` headers in all.
    """
    pos = 0
    headers_left = headers_max
    for index in range(count):
        if pos >= len(payload):
            raise InvalidRecordError(pos, f"the batch ends after {index} of its {count} records")
        try:
            span = _scan_record(payload, pos, headers_left)
        except IndexError:
            raise InvalidRecordError(len(payload), "the payload ends inside a record") from None
        pos = span.end
        if span.headers:
            headers_left -= len(span.headers)
        yield span
    if pos != len(payload):
        raise InvalidRecordError(pos, f"{len(payload) - pos} bytes after the {count} records")


def batch_payload(
    header: BatchHeader,
    batch: Buffer,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """The decompressed records section of the one whole batch in `batch`.

    Raises `CompressionError` for a payload that its codec cannot read or that would exceed the
    limit.
    """
    section = memoryview(batch)[HEADER_SIZE : header.size]
    codec = header.attributes & CODEC_MASK
    if not codec:
        return bytes(section)
    return bytes(decompress(codec, section, decompressed_bytes_max=decompressed_bytes_max))


def iter_records(
    header: BatchHeader,
    batch: Buffer,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """The records of the one whole batch in `batch`, made one at a time.

    The payload is decompressed at the first record. Offsets are absolute; with LogAppendTime every
    timestamp is the batch's max timestamp. Raises `InvalidRecordError` and `CompressionError`.
    """
    payload = batch_payload(header, batch, decompressed_bytes_max=decompressed_bytes_max)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
    for span in scan_records(payload, header.count):
        key_start, value_start = span.key_start, span.value_start
        yield Record(
            base_offset + span.offset_delta,
            base_timestamp + span.timestamp_delta if append_time is None else append_time,
            None if span.key_length < 0 else payload[key_start : key_start + span.key_length],
            None
            if span.value_length < 0
            else payload[value_start : value_start + span.value_length],
            span.headers,
        )
