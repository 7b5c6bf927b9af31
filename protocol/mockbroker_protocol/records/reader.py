"""The records of a log or a Fetch response."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker_protocol.records.batch import Buffer, check_crc, split_batches
from mockbroker_protocol.records.compression import DECOMPRESSED_BYTES_MAX
from mockbroker_protocol.records.record import Record, iter_records


def read_records(
    buffer: Buffer,
    *,
    check_crcs: bool = True,
    include_control: bool = False,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """Every record in `buffer`, one at a time, with `include_control` also control records.

    An incomplete batch at the end is dropped: a fetch may cut it. Raises the errors of
    `split_batches`, `check_crc` and `iter_records`.
    """
    pos = 0
    for header, batch in split_batches(buffer):
        if check_crcs:
            check_crc(buffer, pos)
        if include_control or not header.is_control:
            yield from iter_records(header, batch, decompressed_bytes_max=decompressed_bytes_max)
        pos += len(batch)


def next_fetch_offset(buffer: Buffer, offset: int) -> int:
    """The offset after the last whole batch in `buffer`, or `offset` if there is none.

    Consumers go on here even when a batch had no record for them: control batches and those
    emptied by compaction take offsets too. Raises the errors of `split_batches`.
    """
    for header, _ in split_batches(buffer):
        offset = header.next_offset
    return offset
