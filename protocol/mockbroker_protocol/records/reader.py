"""The records of whatever a log or a Fetch response holds: any mixture of formats v0, v1 and v2."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker_protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    BatchHeader,
    Buffer,
    check_crc,
    split_batches,
)
from mockbroker_protocol.records.compression import DECOMPRESSED_BYTES_MAX
from mockbroker_protocol.records.errors import CorruptBatchError, UnsupportedMagicError
from mockbroker_protocol.records.legacy import MAGIC_MAX, iter_message_set, message_size
from mockbroker_protocol.records.record import Record, iter_records

MAGIC = 2


def read_records(
    buffer: Buffer,
    *,
    check_crcs: bool = True,
    include_control: bool = False,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """Every record in `buffer`, one at a time; control records only when asked for.

    An incomplete batch at the end is dropped: a fetch may cut it. Raises the errors of
    `split_batches`, `check_crc`, `iter_records` and `iter_message_set`.
    """
    view = memoryview(buffer)
    pos = 0
    while len(view) - pos > MAGIC_OFFSET:
        magic = view[pos + MAGIC_OFFSET]
        if magic > MAGIC:
            raise UnsupportedMagicError(pos + MAGIC_OFFSET, magic)
        end = pos + message_size(view, pos)
        if end - pos <= MAGIC_OFFSET:
            raise CorruptBatchError(pos + LENGTH_OFFSET, f"size {end - pos - LOG_OVERHEAD}")
        if end > len(view):
            return
        if magic <= MAGIC_MAX:
            yield from iter_message_set(
                view[pos:end],
                check_crcs=check_crcs,
                decompressed_bytes_max=decompressed_bytes_max,
            )
        else:
            for header, batch in split_batches(view[pos:end]):
                if check_crcs:
                    check_crc(view, pos)
                if include_control or not header.is_control:
                    yield from iter_records(
                        header, batch, decompressed_bytes_max=decompressed_bytes_max
                    )
        pos = end


def next_fetch_offset(buffer: Buffer, offset: int) -> int:
    """The offset after the last whole batch in `buffer`, or `offset` if there is none.

    Consumers go on here even when a batch had no record for them: control batches and those
    emptied by compaction take offsets too.
    """
    view = memoryview(buffer)
    pos = 0
    while len(view) - pos > MAGIC_OFFSET:
        end = pos + message_size(view, pos)
        if end > len(view) or end <= pos:
            break
        if view[pos + MAGIC_OFFSET] == MAGIC and end - pos >= HEADER_SIZE:
            offset = BatchHeader(view, pos).next_offset
        else:
            offset = int.from_bytes(view[pos : pos + 8], "big", signed=True) + 1
        pos = end
    return offset
