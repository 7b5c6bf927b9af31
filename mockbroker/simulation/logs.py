"""Logs as a reader of all their batches sees them; of a batch only the header counts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEAD = struct.Struct(">qiibIhiqqqhii")  # of a batch, up to its record count
_CONTROL = 0x20
_TRANSACTIONAL = 0x10
_COMMIT = 1
_LENGTH_OVERHEAD = 12
# Behind the header: length, attributes, two deltas, length of the key, and its version.
_MARKER_TYPE_AT = 61 + 5 + 2


class BatchView(NamedTuple):
    """One batch of a log. `marker` is None for data, else whether it commits."""

    base_offset: int
    last_offset: int
    epoch: int  # the leader's
    crc: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int  # how many
    transactional: bool
    marker: bool | None


class LogView(NamedTuple):
    """The log of one partition, as its leader has it. `has_holes` says whether compaction has taken
    offsets out of it.
    """

    topic: str
    topic_id: bytes
    partition: int
    is_internal: bool
    leader_id: int
    start_offset: int
    end_offset: int
    has_holes: bool
    batches: list[BatchView]

    @property
    def name(self) -> str:
        """The partition as people write it."""
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[bytes, int]:
        """The partition, whatever its topic is called."""
        return self.topic_id, self.partition


def batches_of(data: bytes | bytearray | memoryview) -> Iterator[BatchView]:
    """The batches in one piece of a log; a part of a batch at its end is left out."""
    view = memoryview(data)
    at, end = 0, len(view)
    while at + _HEAD.size <= end:
        length = int.from_bytes(view[at + 8 : at + 12], "big") + _LENGTH_OVERHEAD
        if at + length > end:
            return
        yield _batch(view, at)
        at += length


def _batch(data: memoryview, at: int) -> BatchView:
    (
        base,
        _,
        epoch,
        _,
        crc,
        attributes,
        delta,
        _,
        _,
        producer_id,
        producer_epoch,
        sequence,
        count,
    ) = _HEAD.unpack_from(data, at)
    marker = None
    if attributes & _CONTROL:
        marker = data[at + _MARKER_TYPE_AT + 1] == _COMMIT
    return BatchView(
        base,
        base + delta,
        epoch,
        crc,
        producer_id,
        producer_epoch,
        sequence,
        count,
        bool(attributes & _TRANSACTIONAL),
        marker,
    )
