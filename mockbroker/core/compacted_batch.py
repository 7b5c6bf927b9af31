"""Making a batch anew with some of its records: batches are immutable, so compaction copies.

Offsets, sequences, producer, leader epoch and codec stay as they were, and so does the batch's last
offset, for the last sequence of its producer depends on it. Records are copied as they stand, which
is why the base timestamp stays as well (Kafka moves it to the first record that is left; the
timestamps that readers see are the same). Only when a delete horizon is set does every record get
a new timestamp delta: the horizon takes the base timestamp's place (KIP-534).

Source: MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader.
"""

from __future__ import annotations

from collections.abc import Sequence

from mockbroker_protocol.records import HEADER_SIZE, BatchHeader, compress
from mockbroker_protocol.records.batch import (
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    pack_header,
)
from mockbroker_protocol.records.keys import KeySpan
from mockbroker_protocol.records.record import write_varint

NO_TIMESTAMP = -1


def rebuild(
    header: BatchHeader, payload: bytes, spans: Sequence[KeySpan], horizon_ms: int | None
) -> bytearray:
    """A copy of the batch with only the records `spans` of its decompressed `payload`.

    `horizon_ms` is a delete horizon to be set, None to leave that as it is. At least one record.
    """
    attributes, base_timestamp = header.attributes, header.base_timestamp
    body: bytes | bytearray
    if horizon_ms is None:
        body = b"".join(_stretches(payload, spans))
    else:
        body = _shifted(payload, spans, base_timestamp - horizon_ms)
        attributes |= DELETE_HORIZON_MASK
        base_timestamp = horizon_ms
    max_timestamp = header.max_timestamp
    if not attributes & TIMESTAMP_TYPE_MASK:
        max_timestamp = header.base_timestamp + max(span[2] for span in spans)
    return _assemble(header, body, attributes, base_timestamp, max_timestamp, len(spans))


def _stretches(payload: bytes, spans: Sequence[KeySpan]) -> list[bytes]:
    """The bytes of the records, those of neighbours as one piece."""
    pieces = []
    begin = end = spans[0][0]
    for span in spans:
        if span[0] != end:
            pieces.append(payload[begin:end])
            begin = span[0]
        end = span[1]
    pieces.append(payload[begin:end])
    return pieces


def _shifted(payload: bytes, spans: Sequence[KeySpan], by_ms: int) -> bytearray:
    """The bytes of the records, each with a timestamp delta that is larger by `by_ms`."""
    body = bytearray()
    for _, end, timestamp_delta, deltas_at, _, _, _ in spans:
        start = bytearray(1)  # the record's own attributes, unused
        write_varint(start, timestamp_delta + by_ms)
        write_varint(body, len(start) + end - deltas_at)
        body += start
        body += payload[deltas_at:end]
    return body


def emptied(header: BatchHeader) -> bytearray:
    """A batch without records that keeps the place, producer and last sequence of another."""
    kept = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
    return _assemble(header, b"", header.attributes & kept, NO_TIMESTAMP, header.max_timestamp, 0)


def _assemble(
    header: BatchHeader,
    body: bytes | bytearray,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
) -> bytearray:
    batch = bytearray(HEADER_SIZE)
    codec = attributes & CODEC_MASK
    batch += compress(codec, body) if codec else body
    pack_header(
        batch,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=count,
    )
    return batch
