"""Building batches from records, and rebuilding them with another codec."""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker_protocol.records.batch import (
    ATTRIBUTES_MASK,
    CODEC_MASK,
    CONTROL_MASK,
    HEADER_SIZE,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    TimestampType,
    pack_header,
)
from mockbroker_protocol.records.compression import CompressionType, compress
from mockbroker_protocol.records.record import Record, batch_payload, write_varint

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1

_ONE_BYTE = 64  # zig-zag varints from 0 below it take one
_SHORT_FRAME = 6  # attributes, two deltas, two lengths and the number of headers


def encode_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    record: Record,
) -> None:
    """Append one record to `out`, its length first; the deltas stand for its offset and time."""
    if (
        not record.headers
        and 0 <= offset_delta < _ONE_BYTE
        and 0 <= timestamp_delta < _ONE_BYTE
        and len(record.key or b"") + len(record.value or b"") < _ONE_BYTE - _SHORT_FRAME
    ):
        _encode_short(out, offset_delta, timestamp_delta, record)
        return
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_blob(body, record.key)
    _write_blob(body, record.value)
    write_varint(body, len(record.headers))
    for header_key, header_value in record.headers:
        _write_blob(body, header_key.encode("utf-8", "surrogateescape"))
        _write_blob(body, header_value)
    write_varint(out, len(body))
    out += body


def _encode_short(out: bytearray, offset_delta: int, timestamp_delta: int, record: Record) -> None:
    """Append a record in which every number, its length too, takes one byte."""
    key, value = record.key, record.value
    key_size = 0 if key is None else len(key)
    size = _SHORT_FRAME + key_size + (0 if value is None else len(value))
    out += bytes(
        (size << 1, 0, timestamp_delta << 1, offset_delta << 1, 1 if key is None else key_size << 1)
    )
    if key is not None:
        out += key
    if value is None:
        out.append(1)
    else:
        out.append(len(value) << 1)
        out += value
    out.append(0)  # headers


def _write_blob(out: bytearray, blob: Buffer | None) -> None:
    if blob is None:
        out.append(1)  # zig-zag of -1
    else:
        write_varint(out, len(blob))
        out += blob


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    codec: int = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    keep_offsets: bool = False,
    last_offset: int | None = None,
) -> bytearray:
    """One whole batch of `records`, checksum included.

    Records are numbered from `base_offset` on, unless `keep_offsets`, which takes each record's own
    (a compacted batch has holes). `last_offset` keeps the end of a batch whose last records are
    gone; it is required for a batch without any. The base timestamp is the first record's; with
    LOG_APPEND_TIME the max timestamp is `append_time`. Raises ValueError for an empty batch without
    `last_offset`.
    """
    body = bytearray()
    count = 0
    delta = -1
    base_timestamp = max_timestamp = NO_TIMESTAMP
    for record in records:
        timestamp = record.timestamp
        if count == 0:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        delta = record.offset - base_offset if keep_offsets else count
        encode_record(body, delta, timestamp - base_timestamp, record)
        count += 1
    if last_offset is not None:
        delta = last_offset - base_offset
    elif count == 0:
        raise ValueError("a batch without records needs its last offset")
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = append_time
    attributes = codec | timestamp_type << 3
    if transactional:
        attributes |= TRANSACTIONAL_MASK
    if control:
        attributes |= CONTROL_MASK
    batch = bytearray(HEADER_SIZE)
    # A batch emptied by compaction has no payload at all, compressed or not.
    batch += compress(codec, body) if codec and count else body
    pack_header(
        batch,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=count,
    )
    return batch


def recompress(batch: Buffer, codec: int) -> bytearray:
    """A copy of one whole batch with its records compressed by `codec`, all else unchanged.

    The records are not walked: their bytes do not depend on the codec. Raises `CompressionError`.
    """
    header = BatchHeader(batch)
    payload = batch_payload(header, batch)
    rebuilt = bytearray(HEADER_SIZE)
    rebuilt += compress(codec, payload) if codec and payload else payload
    pack_header(
        rebuilt,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & ATTRIBUTES_MASK & ~CODEC_MASK | codec,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=header.count,
    )
    return rebuilt
