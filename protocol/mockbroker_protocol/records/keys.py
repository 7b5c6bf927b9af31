"""The keys of a batch's records and the places of the records, for compaction.

`scan_keys` walks a payload in parts of the given length, so that a large batch can be walked in
several goes. It makes plain tuples and skips headers, because it runs once or twice for each record
of a log.
"""

from __future__ import annotations

from typing import TypeAlias

from mockbroker_protocol.records.errors import InvalidRecordError
from mockbroker_protocol.records.record import RECORD_LENGTH_MIN, read_varint, read_varlong

# One record of a payload: where it starts, where it ends (and the next one starts), its timestamp
# delta, where its offset delta begins (behind the timestamp delta), the offset delta, its key or
# None, and whether it has a value.
KeySpan: TypeAlias = tuple[int, int, int, int, int, bytes | None, bool]


def scan_keys(payload: bytes, pos: int, count: int) -> list[KeySpan]:
    """The `count` records from `pos` on. Raises `InvalidRecordError` when a length fits nowhere.

    Varints of one byte, and of two where those are common, are decoded in line. Nothing behind the
    sign of the value's length is looked at.
    """
    spans: list[KeySpan] = []
    add = spans.append
    size = len(payload)
    try:
        for _ in range(count):
            start = pos
            byte = payload[pos]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            elif (high := payload[pos + 1]) < 0x80:
                byte = byte & 0x7F | high << 7
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 2
            else:
                length, pos = read_varint(payload, pos)
            end = pos + length
            if length < RECORD_LENGTH_MIN or end > size:
                raise InvalidRecordError(start, f"a record of {length} bytes")
            pos += 1  # the record's own attributes, unused
            byte = payload[pos]
            if byte < 0x80:
                timestamp_delta, deltas_at = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                timestamp_delta, deltas_at = read_varlong(payload, pos)
            byte = payload[deltas_at]
            if byte < 0x80:
                offset_delta, pos = (byte >> 1) ^ -(byte & 1), deltas_at + 1
            elif (high := payload[deltas_at + 1]) < 0x80:
                byte = byte & 0x7F | high << 7
                offset_delta, pos = (byte >> 1) ^ -(byte & 1), deltas_at + 2
            else:
                offset_delta, pos = read_varint(payload, deltas_at)
            byte = payload[pos]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                length, pos = read_varint(payload, pos)
            key = None
            if length >= 0:
                at, pos = pos, pos + length
                key = payload[at:pos]
            if pos >= end:
                raise InvalidRecordError(start, f"a key of {length} bytes in a shorter record")
            # The lowest bit of a zig-zag varint is its sign, and a null value has the length -1.
            add((start, end, timestamp_delta, deltas_at, offset_delta, key, not payload[pos] & 1))
            pos = end
    except IndexError:
        raise InvalidRecordError(size, "the payload ends inside a record") from None
    return spans
