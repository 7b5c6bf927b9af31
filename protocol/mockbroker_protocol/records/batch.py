"""The record batch, message format v2: its 61-byte header, its checksum, and what may be patched.

A batch is one opaque block for nearly everyone: producers checksum it, brokers store it and
consumers open it. Base offset, length and partition leader epoch stand before the checksum and
outside of it, so a broker sets them in place (Kafka's DefaultRecordBatch). Layout, big-endian:

    0 base offset i64 | 8 length i32 (bytes after this field) | 12 leader epoch i32 | 16 magic i8
    17 crc-32c u32 of all from 21 | 21 attributes i16 | 23 last offset delta i32
    27 base timestamp i64 | 35 max timestamp i64 | 43 producer id i64 | 51 producer epoch i16
    53 base sequence i32 | 57 record count i32 | 61 records, one block if compressed
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import TypeAlias

from mockbroker_protocol.records._crc32c import crc32c
from mockbroker_protocol.records.errors import CorruptBatchError, UnsupportedMagicError

Buffer: TypeAlias = bytes | bytearray | memoryview
WritableBuffer: TypeAlias = bytearray | memoryview

HEADER_SIZE = 61
MAGIC = 2
LENGTH_OFFSET = 8
LOG_OVERHEAD = 12  # base offset and length: what `length` does not count
EPOCH_OFFSET = 12
MAGIC_OFFSET = 16
CRC_OFFSET = 17
ATTRIBUTES_OFFSET = 21
MAX_TIMESTAMP_OFFSET = 35
PRODUCER_OFFSET = 43
LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD
SEQUENCE_MAX = 0x7FFFFFFF

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
ATTRIBUTES_MASK = 0x7F  # all that have a meaning

_HEADER = struct.Struct(">qiibIhiqqqhii")
_unpack_header = _HEADER.unpack_from
_unpack_producer = struct.Struct(">qh").unpack_from
_unpack_i32 = struct.Struct(">i").unpack_from
_unpack_crc = struct.Struct(">I").unpack_from
_pack_crc = struct.Struct(">I").pack_into
_pack_i64 = struct.Struct(">q").pack_into
_pack_i32 = struct.Struct(">i").pack_into
_pack_i16 = struct.Struct(">h").pack_into


class TimestampType(IntEnum):
    """The source of the timestamps: the producer, or the broker at append (attribute bit 3)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


def producer_of(batch: Buffer) -> tuple[int, int] | None:
    """Id and epoch of the producer in a batch's header; None where it names none, or is no batch.

    Nothing else is looked at: quicker than a `BatchHeader`.
    """
    if len(batch) < HEADER_SIZE or batch[MAGIC_OFFSET] != MAGIC:
        return None
    producer: tuple[int, int] = _unpack_producer(batch, PRODUCER_OFFSET)
    return None if producer[0] < 0 else producer


class BatchHeader:
    """The header fields of one batch, unpacked at once; nothing of the records is touched.

    Raises `CorruptBatchError` when fewer than 61 bytes follow `pos`. The values are taken as they
    stand: see `split_batches` for the checks that make a batch usable.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, buffer: Buffer, pos: int = 0) -> None:
        try:
            (
                self.base_offset,
                self.length,
                self.leader_epoch,
                self.magic,
                self.crc,
                self.attributes,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.count,
            ) = _unpack_header(buffer, pos)
        except struct.error:
            left = max(len(buffer) - pos, 0)
            raise CorruptBatchError(
                pos, f"{left} bytes where a batch header has {HEADER_SIZE}"
            ) from None

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Where a consumer goes on, also past records that compaction removed."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapping from 2^31-1 to 0; -1 without a base sequence."""
        if self.base_sequence < 0:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        """Compression codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5-7 are not assigned."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType((self.attributes & TIMESTAMP_TYPE_MASK) >> 3)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_MASK)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > -1

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the cleaner's delete horizon (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_MASK)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in BatchHeader.__annotations__)
        return f"BatchHeader({fields})"


def increment_sequence(sequence: int, by: int) -> int:
    """The producer sequence `by` records on; after 2^31-1 comes 0 (DefaultRecordBatch)."""
    if sequence > SEQUENCE_MAX - by:
        return by - (SEQUENCE_MAX - sequence) - 1
    return sequence + by


def split_batches(buffer: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the header and the bytes (a view, nothing is copied) of each whole batch.

    An incomplete batch at the end is dropped, as Kafka and its consumers do: a fetch may cut it.
    Raises `CorruptBatchError` for a length that no batch has and `UnsupportedMagicError` for a
    message of another format than v2. The checksum is not checked here: see `check_crc`.
    """
    view = memoryview(buffer)
    pos, end = 0, len(view)
    while end - pos >= HEADER_SIZE:
        magic = view[pos + MAGIC_OFFSET]
        if magic != MAGIC:
            raise UnsupportedMagicError(pos + MAGIC_OFFSET, magic)
        header = BatchHeader(view, pos)
        length = header.length
        if length < LENGTH_MIN:
            raise CorruptBatchError(
                pos + LENGTH_OFFSET, f"batch length {length}, less than {LENGTH_MIN}"
            )
        batch_end = pos + length + LOG_OVERHEAD
        if batch_end > end:
            return
        yield header, view[pos:batch_end]
        pos = batch_end


def compute_crc(buffer: Buffer, pos: int = 0) -> int:
    """CRC-32C of the batch at `pos`, from its attributes to its end."""
    size = _unpack_i32(buffer, pos + LENGTH_OFFSET)[0] + LOG_OVERHEAD
    return crc32c(memoryview(buffer)[pos + ATTRIBUTES_OFFSET : pos + size])


def crc_matches(buffer: Buffer, pos: int = 0) -> bool:
    """Whether the stored checksum of the whole batch at `pos` is that of its bytes."""
    return compute_crc(buffer, pos) == int(_unpack_crc(buffer, pos + CRC_OFFSET)[0])


def check_crc(buffer: Buffer, pos: int = 0) -> None:
    """Raise `CorruptBatchError` unless the checksum of the whole batch at `pos` is right."""
    computed = compute_crc(buffer, pos)
    stored = _unpack_crc(buffer, pos + CRC_OFFSET)[0]
    if computed != stored:
        raise CorruptBatchError(
            pos + CRC_OFFSET, f"crc-32c {stored:#010x}, but the bytes give {computed:#010x}"
        )


def set_base_offset(buffer: WritableBuffer, base_offset: int, pos: int = 0) -> None:
    """Give the batch at `pos` its place in the log; outside the checksum."""
    _pack_i64(buffer, pos, base_offset)


def set_leader_epoch(buffer: WritableBuffer, leader_epoch: int, pos: int = 0) -> None:
    """Stamp the batch at `pos` with the epoch of its leader; outside the checksum."""
    _pack_i32(buffer, pos + EPOCH_OFFSET, leader_epoch)


def set_offset_and_epoch(
    buffer: WritableBuffer, base_offset: int, leader_epoch: int, pos: int = 0
) -> None:
    """Set the two fields that a leader writes into a batch at append."""
    _pack_i64(buffer, pos, base_offset)
    _pack_i32(buffer, pos + EPOCH_OFFSET, leader_epoch)


def set_max_timestamp(
    buffer: WritableBuffer, timestamp_type: TimestampType, max_timestamp: int, pos: int = 0
) -> None:
    """Set timestamp type and max timestamp (ms) and recompute the checksum if that changes
    anything.

    With LOG_APPEND_TIME every record of the batch then reads as `max_timestamp`, so the records
    themselves stay as they are (DefaultRecordBatch.setMaxTimestamp).
    """
    header = BatchHeader(buffer, pos)
    if timestamp_type is header.timestamp_type and max_timestamp == header.max_timestamp:
        return
    # A rewritten batch loses the unused bits (DefaultRecordBatch.computeAttributes).
    attributes = header.attributes & ATTRIBUTES_MASK & ~TIMESTAMP_TYPE_MASK | timestamp_type << 3
    _pack_i16(buffer, pos + ATTRIBUTES_OFFSET, attributes)
    _pack_i64(buffer, pos + MAX_TIMESTAMP_OFFSET, max_timestamp)
    update_crc(buffer, pos)


def update_crc(buffer: WritableBuffer, pos: int = 0) -> None:
    """Write the right checksum into the batch at `pos`."""
    _pack_crc(buffer, pos + CRC_OFFSET, compute_crc(buffer, pos))


def pack_header(
    buffer: WritableBuffer,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> None:
    """Fill the first 61 bytes of `buffer`, which is one whole batch; length and checksum are
    computed.
    """
    _HEADER.pack_into(
        buffer,
        0,
        base_offset,
        len(buffer) - LOG_OVERHEAD,
        leader_epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    update_crc(buffer)
