"""Copies of a batch with some of its records.

Offsets, sequences, producer, leader epoch and codec do not change. The last offset does not change
either, because the producer's last sequence depends on it. The base timestamp is that of the first
retained record, or the delete horizon if the batch has one (KIP-534). If it does not change, the
bytes of the records are copied.

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

    `spans` has at least one record. `horizon_ms` is a new delete horizon; None changes nothing.
    """
    attributes = header.attributes
    # With LogAppendTime each record has the time of the batch; its delta is ignored.
    append_time = header.max_timestamp if attributes & TIMESTAMP_TYPE_MASK else None
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON_MASK
        base_timestamp = horizon_ms
    elif header.has_delete_horizon:
        base_timestamp = header.base_timestamp
    elif append_time is None:
        base_timestamp = header.base_timestamp + spans[0][2]
    else:
        base_timestamp = append_time
    body: bytes | bytearray
    if append_time is not None:
        body = _timed(payload, spans, [append_time - base_timestamp] * len(spans))
        max_timestamp = append_time
    else:
        later_ms = header.base_timestamp - base_timestamp
        if later_ms:
            body = _timed(payload, spans, [span[2] + later_ms for span in spans])
        else:
            body = b"".join(_contiguous_pieces(payload, spans))
        max_timestamp = header.base_timestamp + max(span[2] for span in spans)
    return _assemble(header, body, attributes, base_timestamp, max_timestamp, len(spans))


def _contiguous_pieces(payload: bytes, spans: Sequence[KeySpan]) -> list[bytes]:
    """The bytes of the records; adjacent records are one piece."""
    pieces = []
    begin = end = spans[0][0]
    for span in spans:
        if span[0] != end:
            pieces.append(payload[begin:end])
            begin = span[0]
        end = span[1]
    pieces.append(payload[begin:end])
    return pieces


def _timed(payload: bytes, spans: Sequence[KeySpan], deltas: Sequence[int]) -> bytearray:
    """The bytes of the records with other timestamp deltas."""
    body = bytearray()
    for (_, end, _, deltas_at, _, _, _), delta in zip(spans, deltas, strict=True):
        start = bytearray(1)  # the record's own attributes, unused
        write_varint(start, delta)
        write_varint(body, len(start) + end - deltas_at)
        body += start
        body += payload[deltas_at:end]
    return body


def emptied(header: BatchHeader) -> bytearray:
    """A batch without records, with the offsets, producer and last sequence of another."""
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
