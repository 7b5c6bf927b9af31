"""One replica's log: batches in the order of their offsets, each held once, handed out uncopied.

Nouns: a *batch* is an opaque run of bytes with a base offset. The bytes lie in *extents*, stretches
of memory that hold one large batch or many small ones back to back. A batch's *position* is the
number of bytes ever appended before it, so that sizes are differences of positions, whatever
extents they cross. A *segment* is a run of batches as Kafka would put into one file: here only its
first offset and position, for retention and compaction to work on.

A batch is patched (base offset, leader epoch) as it is published and never again; what is truncated
is dropped, not overwritten, because a connection may still be sending a view of it.

Where the bytes lie was settled by measurement. A view of the request's frame costs 400 bytes beside
the batch (the memoryview and what it is a view of), and it keeps the whole frame alive, other
partitions' batches included. So a batch below `VIEW_BYTES_MIN` is copied, once, into the extent
that is being filled, which costs less than keeping the view; small batches thereby also leave as
one piece, however many they are. A larger batch that makes up nearly all of its frame is kept where
it is, and one that does not is copied to an extent of its own.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from mockbroker.core.epoch_cache import EpochCache
from mockbroker.core.producer_state import ProducerStates
from mockbroker_protocol.records import BatchHeader, batch_payload, scan_records

VIEW_BYTES_MIN = 32 * 1024
EXTENT_BYTES_MIN = 1024
EXTENT_BYTES_MAX = 1024 * 1024
NO_TIMESTAMP = -1
LOG_OVERHEAD = 12  # base offset and length, which a batch's own length leaves out
TIMESTAMP_TYPE_MASK = 0x08

_PLACE = struct.Struct(">qii")  # base offset, length, leader epoch
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
_MAX_TIMESTAMP_AT = 35
_LEADER_EPOCH_AT = 12


class Segment(NamedTuple):
    """What would be one file: offsets from `base_offset` on, `size` bytes."""

    base_offset: int
    size: int


class TimestampOffset(NamedTuple):
    """Where a timestamp lookup landed: a record's own timestamp (ms), offset and leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


class ReplicaLog:
    """The log of one replica of one partition.

    `start_offset` is where readers may begin, `end_offset` the next offset to be written. The log
    knows nothing of watermarks, isolation or other replicas; `read` is told where to stop.
    """

    __slots__ = (
        "_base_offsets",
        "_extent_positions",
        "_extents",
        "_filling",
        "_filling_at",
        "_has_holes",
        "_max_timestamps",
        "_positions",
        "_segment_offsets",
        "_segment_positions",
        "_segment_time_ms",
        "end_offset",
        "end_position",
        "epochs",
        "producers",
        "start_offset",
    )

    def __init__(self, start_offset: int = 0) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.end_position = 0
        self.epochs = EpochCache()
        self.producers = ProducerStates()
        # One entry per batch. The timestamps are running maxima, so they rise and can be bisected.
        self._base_offsets = array("q")
        self._positions = array("q")
        self._max_timestamps = array("q")
        self._extents: list[memoryview] = []
        self._extent_positions: list[int] = []
        self._filling = memoryview(b"")
        self._filling_at = 0
        self._has_holes = False
        self._segment_offsets = [start_offset]
        self._segment_positions = [0]
        self._segment_time_ms = NO_TIMESTAMP

    # -- appending ---------------------------------------------------------------------------------

    def append(
        self,
        batch: memoryview,
        last_offset_delta: int,
        max_timestamp: int,
        leader_epoch: int,
    ) -> int:
        """Append one whole batch and return the base offset it was given.

        `batch` is a writable view; its first 16 bytes are patched. The log may keep it or copy it,
        but never writes to it later, and the caller must not either.
        """
        base_offset = self.end_offset
        position = self.end_position
        size = len(batch)
        _PLACE.pack_into(batch, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
        if size >= VIEW_BYTES_MIN:
            # `obj` is the frame: a slice of a memoryview refers to what lies below all of them.
            if size * 8 < len(batch.obj) * 7:  # type: ignore[arg-type]
                batch = memoryview(bytes(batch))
            self._extents.append(batch.toreadonly())
            self._extent_positions.append(position)
            self._filling = self._filling[self._filling_at :]
            self._filling_at = 0
        else:
            self._copy_in(batch, size, position)
        self._base_offsets.append(base_offset)
        self._positions.append(position)
        timestamps = self._max_timestamps
        if timestamps and timestamps[-1] > max_timestamp:
            timestamps.append(timestamps[-1])
        else:
            timestamps.append(max_timestamp)
        self.end_offset = base_offset + last_offset_delta + 1
        self.end_position = position + size
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        return base_offset

    def _copy_in(self, batch: memoryview, size: int, position: int) -> None:
        """Put a batch behind the last one, in the extent being filled or in a fresh one.

        A fresh extent takes an eighth of what the log holds, within bounds, so that what is not
        filled yet stays a small part of a large log and a small log stays small.
        """
        at = self._filling_at
        end = at + size
        filling = self._filling
        if end > len(filling):
            room = min(max(self.end_position // 8, EXTENT_BYTES_MIN), EXTENT_BYTES_MAX)
            filling = self._filling = memoryview(bytearray(max(room, size)))
            at, end = 0, size
        filling[at:end] = batch
        if at == 0:
            self._extents.append(filling.toreadonly())
            self._extent_positions.append(position)
        self._filling_at = end

    def maybe_roll(
        self, size: int, max_timestamp: int, now_ms: int, segment_bytes: int, segment_ms: int
    ) -> bool:
        """Start a new segment if a batch of `size` bytes belongs into one (LogSegment.shouldRoll).

        Called before the append. A segment is full when the batch would make it exceed
        `segment_bytes`, or too old when the batch's timestamp is more than `segment_ms` after that
        of the segment's first batch (the clock stands in for missing timestamps).
        """
        used = self.end_position - self._segment_positions[-1]
        time_ms = now_ms if max_timestamp < 0 else max_timestamp
        if used == 0:
            self._segment_time_ms = time_ms
            return False
        if used + size <= segment_bytes and time_ms - self._segment_time_ms <= segment_ms:
            return False
        self._segment_offsets.append(self.end_offset)
        self._segment_positions.append(self.end_position)
        self._segment_time_ms = time_ms
        return True

    # -- reading -----------------------------------------------------------------------------------

    def read(
        self, offset: int, upper_offset: int, bytes_max: int, *, at_least_one: bool
    ) -> tuple[list[memoryview], int]:
        """Whole batches from the one that holds `offset` up to `upper_offset`: (pieces, bytes).

        As many as fit into `bytes_max`; with `at_least_one` the first is returned even if it does
        not fit (KIP-74). The pieces are views: nothing is copied.
        """
        first, last = self._range(offset, upper_offset)
        if first >= last:
            return [], 0
        positions = self._positions
        begin = positions[first]
        end = positions[last] if last < len(positions) else self.end_position
        if end - begin > bytes_max:
            # All batches before `last` that end within the limit; the first one in any case.
            last = bisect_right(positions, begin + bytes_max, first, last) - 1
            if last <= first:
                if not at_least_one:
                    return [], 0
                last = first + 1
            end = positions[last] if last < len(positions) else self.end_position
        return self._pieces(begin, end), end - begin

    def bytes_between(self, offset: int, upper_offset: int) -> int:
        """Bytes of the batches from the one that holds `offset` up to `upper_offset`."""
        first, last = self._range(offset, upper_offset)
        if first >= last:
            return 0
        positions = self._positions
        end = positions[last] if last < len(positions) else self.end_position
        return end - positions[first]

    def offset_after(self, offset: int, size: int) -> int:
        """Where a read that began at `offset` and returned `size` bytes goes on."""
        positions = self._positions
        first, _ = self._range(offset, offset + 1)
        following = bisect_left(positions, positions[first] + size)
        return self._base_offsets[following] if following < len(positions) else self.end_offset

    def _range(self, offset: int, upper_offset: int) -> tuple[int, int]:
        """Indexes of the batch that holds `offset` and of the first at or above `upper_offset`."""
        offsets = self._base_offsets
        if offset >= self.end_offset:
            return len(offsets), len(offsets)
        first = bisect_right(offsets, offset) - 1
        if first < 0:
            first = 0
        elif self._has_holes and self._last_offset(first) < offset:
            first += 1
        if upper_offset >= self.end_offset:
            return first, len(offsets)
        return first, bisect_left(offsets, upper_offset, first)

    def _pieces(self, begin: int, end: int) -> list[memoryview]:
        """The stretches of memory between two positions."""
        extents, starts = self._extents, self._extent_positions
        index = bisect_right(starts, begin) - 1
        pieces = []
        while begin < end:
            start = starts[index]
            index += 1
            extent_end = starts[index] if index < len(starts) else self.end_position
            stop = end if end < extent_end else extent_end
            extent = extents[index - 1]
            if begin == start and stop - start == len(extent):
                pieces.append(extent)
            else:
                pieces.append(extent[begin - start : stop - start])
            begin = stop
        return pieces

    def _batch(self, index: int) -> memoryview:
        positions = self._positions
        end = positions[index + 1] if index + 1 < len(positions) else self.end_position
        return self._pieces(positions[index], end)[0]

    def _last_offset(self, index: int) -> int:
        delta: int = _I32.unpack_from(self._batch(index), _LAST_OFFSET_DELTA_AT)[0]
        return self._base_offsets[index] + delta

    def batches(self) -> Iterator[memoryview]:
        """Every batch the log holds, in order."""
        for index in range(len(self._base_offsets)):
            yield self._batch(index)

    @property
    def batch_count(self) -> int:
        return len(self._base_offsets)

    @property
    def size(self) -> int:
        """Bytes of all batches the log holds."""
        return self.end_position - self._positions[0] if self._positions else 0

    @property
    def segments(self) -> list[Segment]:
        """The segments, oldest first; the last one is active."""
        ends = [*self._segment_positions[1:], self.end_position]
        return [
            Segment(offset, end - begin)
            for offset, begin, end in zip(
                self._segment_offsets, self._segment_positions, ends, strict=True
            )
        ]

    # -- looking up timestamps ---------------------------------------------------------------------

    def find_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or above the log start whose timestamp is at least `timestamp` (ms).

        Only batches whose header promises such a record are opened. Raises RecordsError for one
        that cannot be (it was accepted unwalked).
        """
        maxima = self._max_timestamps
        first_live, count = self._range(self.start_offset, self.end_offset)
        index = max(bisect_left(maxima, timestamp), first_live)
        while index < count:
            batch = self._batch(index)
            if _I64.unpack_from(batch, _MAX_TIMESTAMP_AT)[0] >= timestamp:
                found = self._find_in(batch, timestamp)
                if found is not None:
                    return found
            index += 1
        return None

    def _find_in(self, batch: memoryview, timestamp: int) -> TimestampOffset | None:
        for found in _timestamps(batch):
            if found.timestamp >= timestamp and found.offset >= self.start_offset:
                return found
        return None

    def find_max_timestamp(self) -> TimestampOffset | None:
        """The first record with the highest timestamp of the log, or None if there is none.

        As in Kafka, the log start does not matter: as long as the segment is there, a record below
        it can be the answer.
        """
        maxima = self._max_timestamps
        if not maxima:
            return None
        highest = maxima[-1]
        for found in _timestamps(self._batch(bisect_left(maxima, highest))):
            if found.timestamp == highest:
                return found
        return None

    # -- cutting -----------------------------------------------------------------------------------

    def move_start(self, offset: int) -> bool:
        """Raise the log start to `offset`; False if it is there already. No bytes move."""
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.log_start_moved(offset)
        return True

    def truncate(self, offset: int) -> bool:
        """Drop every batch that reaches to `offset` or beyond; False if the log ends before it.

        The log then ends at `offset` (LocalLog.truncateTo). Producer state is made anew from the
        batches that are left.
        """
        if offset >= self.end_offset:
            return False
        count = bisect_left(self._base_offsets, offset)
        if count and self._last_offset(count - 1) >= offset:
            count -= 1
            self._has_holes = True
        self._cut(count)
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.epochs.truncate_from_end(offset)
        self._replay_producers()
        return True

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and start anew at `offset`."""
        self._cut(0)
        self.start_offset = self.end_offset = offset
        self._segment_offsets[0] = offset
        self.epochs.truncate_from_end(0)
        self.producers.clear()

    def _cut(self, count: int) -> None:
        """Keep the first `count` batches. Their extents are never written to again."""
        positions = self._positions
        if count < len(positions):
            self.end_position = positions[count]
        end = self.end_position
        del positions[count:]
        del self._base_offsets[count:]
        del self._max_timestamps[count:]
        extents = bisect_left(self._extent_positions, end)
        del self._extents[extents:]
        del self._extent_positions[extents:]
        self._filling = memoryview(b"")
        self._filling_at = 0
        while len(self._segment_positions) > 1 and self._segment_positions[-1] >= end:
            self._segment_positions.pop()
            self._segment_offsets.pop()

    def _replay_producers(self) -> None:
        self.producers.clear()
        for batch in self.batches():
            self.producers.replay(batch)


def _timestamps(batch: memoryview) -> Iterator[TimestampOffset]:
    """Timestamp and offset of each record of one batch, which is decompressed if need be."""
    header = BatchHeader(batch)
    base_offset, epoch = header.base_offset, header.leader_epoch
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
    for span in scan_records(batch_payload(header, batch), header.count):
        timestamp = (
            header.base_timestamp + span.timestamp_delta if append_time is None else append_time
        )
        yield TimestampOffset(timestamp, base_offset + span.offset_delta, epoch)
