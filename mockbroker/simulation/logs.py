"""Views of logs and their batches, read from the batch headers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_HEAD = struct.Struct(">qiibIhiqqqhii")  # of a batch, up to its record count
_TO_PRODUCER_ID = struct.Struct(">qi9xh20xq")  # base offset, length, attributes, producer id
_CONTROL = 0x20
_TRANSACTIONAL = 0x10
_COMMIT = 1
_LENGTH_OVERHEAD = 12
# Behind the header: length, attributes, two deltas, length of the key, and its version.
_MARKER_TYPE_AT = 61 + 5 + 2
# Behind the type: length of the value, and its version.
_COORDINATOR_EPOCH = struct.Struct(">i")
_COORDINATOR_EPOCH_AT = _MARKER_TYPE_AT + 2 + 1 + 2


class ObservedBatch(msgspec.Struct, frozen=True, gc=False):
    """One batch of a log. `marker` is None for data, else whether it commits; `coordinator_epoch`
    is -1 for data.
    """

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
    coordinator_epoch: int


class LogView(NamedTuple):
    """The leader's log of one partition. `has_holes`: compaction has removed offsets."""

    topic: str
    topic_id: bytes
    partition: int
    is_internal: bool
    leader_id: int
    start_offset: int
    end_offset: int
    has_holes: bool
    batches: list[ObservedBatch]

    @property
    def name(self) -> str:
        """The text of the partition, such as `orders-0`."""
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[bytes, int]:
        """The partition by topic id."""
        return self.topic_id, self.partition


def batches_of(data: bytes | bytearray | memoryview) -> Iterator[ObservedBatch]:
    """The batches in one piece of a log; a part of a batch at its end is left out."""
    view = memoryview(data)
    at, end = 0, len(view)
    while at + _HEAD.size <= end:
        (
            base,
            length,
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
        ) = _HEAD.unpack_from(view, at)
        after = at + length + _LENGTH_OVERHEAD
        if after > end:
            return
        marker, coordinator_epoch = None, -1
        if attributes & _CONTROL:
            marker = view[at + _MARKER_TYPE_AT + 1] == _COMMIT
            (coordinator_epoch,) = _COORDINATOR_EPOCH.unpack_from(view, at + _COORDINATOR_EPOCH_AT)
        yield ObservedBatch(
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
            coordinator_epoch,
        )
        at = after


def transactional_batches_of(
    data: bytes | bytearray | memoryview,
) -> Iterator[tuple[int, int, bool]]:
    """Base offset and producer id of the batches of transactions in one piece of a log, and whether
    each is a marker; a part of a batch at its end is left out.
    """
    at, end = 0, len(data)
    while at + _HEAD.size <= end:
        base_offset, length, attributes, producer_id = _TO_PRODUCER_ID.unpack_from(data, at)
        at += length + _LENGTH_OVERHEAD
        if at > end:
            return
        if attributes & (_CONTROL | _TRANSACTIONAL):
            yield base_offset, producer_id, bool(attributes & _CONTROL)
