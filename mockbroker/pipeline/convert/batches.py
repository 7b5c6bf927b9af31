"""Opens record batches: offsets, times, hashes and ids of all records at once, as arrays.

A batch may be delivered many times. Recently decoded batches are cached by their bytes; only the
base offset differs.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mockbroker.pipeline.hashing import HASH_BYTES, NULL
from mockbroker_protocol.records import BatchHeader, RecordsError, batch_payload, scan_records
from mockbroker_protocol.records.batch import CRC_OFFSET, TIMESTAMP_TYPE_MASK

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

ID_HEADER = "mb-id"
# The number of cached records, about 40 bytes each.
KEPT_RECORDS_MAX = 1_000_000
_DIGEST_BYTES = 64
_PREFIXES = tuple(length.to_bytes(4, "big") for length in range(4096))


class OpenedBatch(NamedTuple):
    """The records of one batch. `ids` is None if no record has one; `key_hashes` has 0 where
    `has_key` is false, and both are None if no record has a key.
    """

    deltas: Numbers  # of offsets
    timestamps: Numbers
    value_hashes: Numbers
    key_hashes: Numbers | None
    has_key: Any
    ids: list[str | None] | None

    def __len__(self) -> int:
        return len(self.deltas)


EMPTY = OpenedBatch(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), None, None, None
)


class BatchOpener:
    """Decodes batches, with a cache."""

    def __init__(self, kept_records_max: int = KEPT_RECORDS_MAX) -> None:
        self._kept: OrderedDict[bytes, OpenedBatch] = OrderedDict()
        self._kept_records = 0
        self._kept_records_max = kept_records_max

    def open(self, header: BatchHeader, batch: memoryview) -> OpenedBatch:
        """The records of one whole batch; none if it is unreadable."""
        known_by = blake2b(batch[CRC_OFFSET:], digest_size=16).digest()
        known = self._kept.get(known_by)
        if known is not None:
            return known
        opened = open_batch(header, batch)
        self._kept[known_by] = opened
        self._kept_records += len(opened)
        while self._kept_records > self._kept_records_max and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._kept_records -= len(oldest)
        return opened


def open_batch(header: BatchHeader, batch: memoryview) -> OpenedBatch:
    """The records of one whole batch; none if it is unreadable."""
    try:
        payload = batch_payload(header, batch)
        return _opened(header, payload)
    except (RecordsError, IndexError, OverflowError):
        return EMPTY


def _opened(header: BatchHeader, payload: bytes) -> OpenedBatch:  # noqa: C901, PLR0915 - calls cost most
    deltas: list[int] = []
    times: list[int] = []
    hashes: list[bytes] = []
    keys: list[bytes | None] = []
    ids: list[str | None] = []
    add_delta, add_time, add_hash, add_key = (
        deltas.append,
        times.append,
        hashes.append,
        keys.append,
    )
    position, end_of_all = 0, len(payload)
    prefixes, prefix_count = _PREFIXES, len(_PREFIXES)
    for index in range(header.count):
        # length, attributes, timestamp delta, offset delta: varints, usually of one or two bytes
        start = position
        byte = payload[position]
        if byte < 0x80:
            length = byte >> 1
            position += 1
        elif (high := payload[position + 1]) < 0x80:
            length = (byte & 0x7F | high << 7) >> 1
            position += 2
        else:
            length, position = _varint(payload, position)
        end = position + length
        position += 1
        byte = payload[position]
        if byte < 0x80:
            time = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif (high := payload[position + 1]) < 0x80:
            time = (byte & 0x7F | high << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            time, position = _varint(payload, position)
        byte = payload[position]
        if byte < 0x80:
            delta = byte >> 1
            position += 1
        elif (high := payload[position + 1]) < 0x80:
            delta = (byte & 0x7F | high << 7) >> 1
            position += 2
        else:
            delta, position = _varint(payload, position)
        byte = payload[position]
        if byte == 1:
            position += 1
            text = NULL
            add_key(None)
        else:
            if byte < 0x80:
                size = byte >> 1
                position += 1
            elif (high := payload[position + 1]) < 0x80:
                size = (byte & 0x7F | high << 7) >> 1
                position += 2
            else:
                size, position = _varint(payload, position)
            key = payload[position : position + size]
            position += size
            text = (prefixes[size] if size < prefix_count else size.to_bytes(4, "big")) + key
            add_key(text)
        byte = payload[position]
        if byte == 1:
            position += 1
            text += NULL
        else:
            if byte < 0x80:
                size = byte >> 1
                position += 1
            elif (high := payload[position + 1]) < 0x80:
                size = (byte & 0x7F | high << 7) >> 1
                position += 2
            else:
                size, position = _varint(payload, position)
            value = payload[position : position + size]
            position += size
            text += (prefixes[size] if size < prefix_count else size.to_bytes(4, "big")) + value
        if payload[position] or position + 1 != end:
            found = _id(payload, start)
            if found is not None:
                ids = ids or [None] * header.count
                ids[index] = found
        if not start < position < end <= end_of_all:
            return EMPTY
        position = end
        add_delta(delta)
        add_time(time)
        add_hash(blake2b(text).digest())
    if position != end_of_all:
        return EMPTY
    return _arrays(header, deltas, times, hashes, keys, ids or None)


def _arrays(
    header: BatchHeader,
    deltas: list[int],
    times: list[int],
    hashes: list[bytes],
    keys: list[bytes | None],
    ids: list[str | None] | None,
) -> OpenedBatch:
    count = len(deltas)
    if header.attributes & TIMESTAMP_TYPE_MASK:
        timestamps = np.full(count, header.max_timestamp, np.int64)
    else:
        timestamps = np.array(times, np.int64) + header.base_timestamp
    key_hashes = has_key = None
    if keys.count(None) < count:
        nothing = bytes(_DIGEST_BYTES)
        digests = [nothing if key is None else blake2b(key).digest() for key in keys]
        key_hashes = _numbers(digests)
        has_key = np.array([key is not None for key in keys], bool)
    return OpenedBatch(
        np.array(deltas, np.int64), timestamps, _numbers(hashes), key_hashes, has_key, ids
    )


def _numbers(digests: list[bytes]) -> Numbers:
    """The hashes, which are the first bytes of the digests."""
    whole = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, _DIGEST_BYTES)
    first = np.ascontiguousarray(whole[:, :HASH_BYTES])
    return first.view(">i8").reshape(-1).astype(np.int64)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A zig-zag varint of up to ten bytes, and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def _id(payload: bytes, start: int) -> str | None:
    """The id in a record's headers. The record is read again, completely."""
    size, begin = _varint(payload, start)
    (span,) = scan_records(payload[start : begin + size], 1)
    for name, value in span.headers:
        if name == ID_HEADER and value is not None:
            return value.decode("utf-8", "replace")
    return None
