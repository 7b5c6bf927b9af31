"""Reading the records field of a Produce request: exactly one whole batch of message format v2.

Incomplete batches are ignored; impossible sizes or formats are corruption. Corruption at the front
refuses the whole request, corruption behind a batch that partition (ByteBufferLogInputStream,
ProduceRequest.validateRecords).
"""

from __future__ import annotations

import struct
from typing import cast

from mockbroker.core.errors import ApiError
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import HEADER_SIZE, BatchHeader, CompressionType
from mockbroker_protocol.records.batch import CODEC_MASK, LOG_OVERHEAD, MAGIC_OFFSET
from mockbroker_protocol.types import Records

SIZE_MIN = 14  # LegacyRecord.RECORD_OVERHEAD_V0
MAGIC_MAX = 2
ZSTD_SINCE = 7
PRODUCER_ID_END = 51
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_ZSTD = int(CompressionType.ZSTD)

_NONE = 0
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)
_INVALID_RECORD = int(ErrorCode.INVALID_RECORD)
_CORRUPT = int(ErrorCode.CORRUPT_MESSAGE)
_UNSUPPORTED_COMPRESSION = int(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

Opened = tuple[BatchHeader | None, memoryview | None, int]


class _Corrupt(Exception):  # noqa: N818
    """A batch of an impossible size or format."""


def open_records(records: Records, api_version: int) -> Opened:
    """(header, batch, error code) of a records field. Only the header is read.

    Header and batch are None if there is an error, or the records are null. Raises ApiError
    for corruption at the front.
    """
    if records is None:
        return None, None, _NONE
    # A decoded records field is a view of the frame; the cast is for the type checkers.
    view = cast("memoryview", records)
    size = len(view)
    if size >= HEADER_SIZE:
        header = BatchHeader(view)
        if header.magic == MAGIC_MAX and header.length + LOG_OVERHEAD == size:
            if api_version < ZSTD_SINCE and header.attributes & CODEC_MASK == _ZSTD:
                return header, view, _UNSUPPORTED_COMPRESSION
            return header, view, _NONE
    return _open_odd(view, api_version)


def _open_odd(records: memoryview, api_version: int) -> Opened:
    """The same for records that are not exactly one batch."""
    try:
        size = _batch_size(records)
    except _Corrupt as corrupt:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(corrupt)) from None
    if size is None:
        return None, None, _INVALID_RECORD
    batch = records[:size]
    if batch[MAGIC_OFFSET] != MAGIC_MAX:
        return None, None, _INVALID_RECORD
    header = BatchHeader(batch) if size >= HEADER_SIZE else None
    return (
        header,
        batch if header is not None else None,
        _odd_error(records, header, size, api_version),
    )


def _odd_error(records: memoryview, header: BatchHeader | None, size: int, api_version: int) -> int:
    """The error code of records whose first batch has `size` bytes, or 0."""
    if header is not None and api_version < ZSTD_SINCE and header.codec == _ZSTD:
        return _UNSUPPORTED_COMPRESSION
    try:
        another = _batch_size(records[size:])
    except _Corrupt:
        return _CORRUPT
    if another is not None:
        return _INVALID_RECORD
    if header is not None:
        return _NONE
    # A broker reads the header up to the producer id; a shorter one raises in Kafka.
    return _CORRUPT if size >= PRODUCER_ID_END else _UNKNOWN_SERVER_ERROR


def _batch_size(records: memoryview) -> int | None:
    """The size of the first batch, or None if it is incomplete."""
    if len(records) < LOG_OVERHEAD:
        return None
    length = _LENGTH.unpack_from(records, _LENGTH_AT)[0]
    if length < SIZE_MIN:
        raise _Corrupt(
            f"Record size {length} is less than the minimum record overhead ({SIZE_MIN})"
        )
    if len(records) <= MAGIC_OFFSET:
        return None
    magic = records[MAGIC_OFFSET]
    if magic > MAGIC_MAX:
        raise _Corrupt(f"Invalid magic found in record: {magic if magic < 128 else magic - 256}")
    size: int = length + LOG_OVERHEAD
    return size if size <= len(records) else None
