"""The meaning of each byte of record batches, for `explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TypeAlias

from mockbroker_protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    CompressionType,
    RecordsError,
    batch_payload,
    crc_matches,
    iter_records,
    scan_records,
)
from mockbroker_protocol.records.batch import LOG_OVERHEAD, MAGIC, MAGIC_OFFSET

Span: TypeAlias = tuple[int, int, str, str, bool]
"""Start, end, path, text, whether it is wrong."""

# Name, offset and size of each field of the header, in order.
FIELDS = (
    ("base_offset", 0, 8),
    ("length", 8, 4),
    ("leader_epoch", 12, 4),
    ("magic", 16, 1),
    ("crc", 17, 4),
    ("attributes", 21, 2),
    ("last_offset_delta", 23, 4),
    ("base_timestamp", 27, 8),
    ("max_timestamp", 35, 8),
    ("producer_id", 43, 8),
    ("producer_epoch", 51, 2),
    ("base_sequence", 53, 4),
    ("count", 57, 4),
)


def looks_like_batch(data: bytes) -> bool:
    """Whether the bytes begin like a batch."""
    if len(data) <= MAGIC_OFFSET or data[MAGIC_OFFSET] != MAGIC:
        return False
    size = int.from_bytes(data[8:12], "big", signed=True) + LOG_OVERHEAD
    return data[:4] == bytes(4) and MAGIC_OFFSET < size <= 2 * len(data)


def explain_batches(data: bytes) -> Iterator[Span]:
    """Every field of every batch; a batch of another format than v2 as a whole."""
    pos = number = 0
    while pos < len(data):
        path = f"batch[{number}]"
        if len(data) - pos <= MAGIC_OFFSET:
            yield pos, len(data), path, f"{len(data) - pos} bytes of a batch cut short", True
            return
        size = int.from_bytes(data[pos + 8 : pos + 12], "big", signed=True) + LOG_OVERHEAD
        magic = data[pos + MAGIC_OFFSET]
        if size > len(data) - pos or size <= MAGIC_OFFSET:
            yield pos + 8, pos + 12, path, f"a batch of {size} bytes, {len(data) - pos} left", True
            return
        if magic != MAGIC or size < HEADER_SIZE:
            yield (
                pos,
                pos + size,
                path,
                f"{size} bytes of magic {magic}, no batch of format v2",
                True,
            )
        else:
            for start, end, name, text, wrong in _batch(data[pos : pos + size]):
                yield pos + start, pos + end, f"{path}.{name}", text, wrong
        pos += size
        number += 1


def _batch(batch: bytes) -> Iterator[Span]:
    header = BatchHeader(batch)
    for name, start, size in FIELDS:
        value = getattr(header, name)
        text, wrong = str(value), False
        if name == "attributes":
            text = _attributes(header)
        elif name == "crc":
            wrong = not crc_matches(batch)
            text = f"{value:08x}" + (", does not match" if wrong else "")
        yield start, start + size, name, text, wrong
    try:
        yield from _records(header, batch)
    except RecordsError as error:
        at = min(HEADER_SIZE + (0 if header.codec else error.byte), len(batch))
        yield at, len(batch), "records", str(error), True


def _attributes(header: BatchHeader) -> str:
    words = []
    if header.codec:
        known = header.codec in {int(codec) for codec in CompressionType}
        words.append(
            CompressionType(header.codec).name.lower() if known else f"codec {header.codec}"
        )
    words.append(header.timestamp_type.name.lower())
    flags = ("is_transactional", "is_control", "has_delete_horizon")
    words += [flag.partition("_")[2] for flag in flags if getattr(header, flag)]
    return ", ".join(words)


def _records(header: BatchHeader, batch: bytes) -> Iterator[Span]:
    if header.codec:
        # Inside a compressed block a record has no bytes of its own to point at.
        payload = batch_payload(header, batch)
        text = f"{len(payload)} bytes decompressed"
        yield HEADER_SIZE, len(batch), "records", text, False
        spans: Iterable[tuple[int, int]] = repeat((HEADER_SIZE, HEADER_SIZE), header.count)
    else:
        payload = batch[HEADER_SIZE:]
        spans = [
            (HEADER_SIZE + span.start, HEADER_SIZE + span.end)
            for span in scan_records(payload, header.count)
        ]
    for index, (record, (start, end)) in enumerate(
        zip(iter_records(header, batch), spans, strict=True)
    ):
        headers = f", headers {list(record.headers)!r}" if record.headers else ""
        text = (
            f"offset {record.offset}, timestamp {record.timestamp}, "
            f"key {record.key!r}, value {record.value!r}{headers}"
        )
        yield start, end, f"records[{index}]", text, False
