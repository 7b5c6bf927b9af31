"""Records as they travel and as they are stored.

Nouns: a *record* has an offset, a timestamp, a key, a value and headers. A *batch* is a block of
records under one 61-byte *header* with one checksum; its records section, the *payload*, may be
compressed by a *codec*. A *control batch* holds one *marker* that ends a transaction. The message
formats v0 and v1 are refused: Kafka 4 writes neither.

Everything here works on buffers (bytes, bytearray, memoryview) and touches no more of them than
asked.
"""

from __future__ import annotations

from mockbroker_protocol.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    check_crc,
    crc_matches,
    increment_sequence,
    set_base_offset,
    set_leader_epoch,
    set_max_timestamp,
    set_offset_and_epoch,
    split_batches,
    update_crc,
)
from mockbroker_protocol.records.build import build_batch, recompress
from mockbroker_protocol.records.compression import CompressionType, compress, decompress
from mockbroker_protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    build_marker,
    parse_control_type,
    parse_marker,
    read_control,
)
from mockbroker_protocol.records.errors import (
    CompressionError,
    CorruptBatchError,
    DecompressedTooLargeError,
    InvalidRecordError,
    RecordsError,
    TooManyHeadersError,
    UnsupportedMagicError,
)
from mockbroker_protocol.records.reader import next_fetch_offset, read_records
from mockbroker_protocol.records.record import (
    Header,
    Record,
    RecordSpan,
    batch_payload,
    iter_records,
    scan_records,
)

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "CompressionError",
    "CompressionType",
    "ControlType",
    "CorruptBatchError",
    "DecompressedTooLargeError",
    "EndTransactionMarker",
    "Header",
    "InvalidRecordError",
    "Record",
    "RecordSpan",
    "RecordsError",
    "TimestampType",
    "TooManyHeadersError",
    "UnsupportedMagicError",
    "batch_payload",
    "build_batch",
    "build_marker",
    "check_crc",
    "compress",
    "crc_matches",
    "decompress",
    "increment_sequence",
    "iter_records",
    "next_fetch_offset",
    "parse_control_type",
    "parse_marker",
    "read_control",
    "read_records",
    "recompress",
    "scan_records",
    "set_base_offset",
    "set_leader_epoch",
    "set_max_timestamp",
    "set_offset_and_epoch",
    "split_batches",
    "update_crc",
]
