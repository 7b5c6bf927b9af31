"""The memory of a log: batches in the order of their offsets, each stored once.

A *batch* is opaque bytes with a base offset. The bytes are in *extents*: memory blocks that hold
one large batch or many adjacent small ones. A batch's *position* is the number of bytes before it.
Only differences of positions have a meaning, because compaction moves positions, even below zero.

Reads return views. Memory is therefore never overwritten: a connection may still be sending a view
of a removed batch.

Measurements decided between views and copies. A view of the request's frame costs 400 bytes and
keeps the whole frame in memory, with the batches of other partitions. A batch below
`VIEW_BYTES_MIN` is therefore copied into the last extent; adjacent small batches are then read as
one piece. A larger batch stays in its frame if it is most of the frame, else it is copied into an
extent of its own.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from mockbroker.core.log.file_state import ALL, FileState

VIEW_BYTES_MIN = 32 * 1024
EXTENT_BYTES_MIN = 1024
EXTENT_BYTES_MAX = 1024 * 1024
NO_TIMESTAMP = -1

_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
_MAX_TIMESTAMP_AT = 35
_NOTHING = memoryview(b"")


class BatchStore:
    """Batches with rising base offsets."""

    __slots__ = (
        "_base_offsets",
        "_extent_positions",
        "_extents",
        "_filling",
        "_filling_at",
        "_max_timestamps",
        "_positions",
        "end_position",
        "file_state",
    )

    def __init__(self) -> None:
        self.end_position = 0
        self.file_state: FileState | None = None  # which batches are in a file
        # One entry per batch. The timestamps are running maxima, so they rise and can be bisected.
        self._base_offsets = array("q")
        self._positions = array("q")
        self._max_timestamps = array("q")
        self._extents: list[memoryview] = []
        self._extent_positions: list[int] = []
        self._filling = _NOTHING
        self._filling_at = 0

    # -- appending ---------------------------------------------------------------------------------

    def put(self, batch: memoryview, base_offset: int, max_timestamp: int) -> None:
        """Append one whole batch. The store keeps the view or copies it."""
        position = self.end_position
        size = len(batch)
        if size >= VIEW_BYTES_MIN:
            # `obj` is the frame: each slice of a memoryview refers to the underlying object.
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
        self.end_position = position + size

    def _copy_in(self, batch: memoryview, size: int, position: int) -> None:
        """Copy a batch into the last extent, or into a new one if it has no room.

        The size of a new extent is an eighth of the store's size, within bounds, so that unused
        memory is a small share.
        """
        at = self._filling_at
        end = at + size
        filling = self._filling
        if end > len(filling):
            held = position - self._positions[0] if self._positions else 0
            room = min(max(held // 8, EXTENT_BYTES_MIN), EXTENT_BYTES_MAX)
            filling = self._filling = memoryview(bytearray(max(room, size)))
            at, end = 0, size
        filling[at:end] = batch
        if at == 0:
            self._extents.append(filling.toreadonly())
            self._extent_positions.append(position)
        self._filling_at = end

    # -- sharing -----------------------------------------------------------------------------------

    def share_into(self, other: BatchStore, first: int, last: int) -> None:
        """Share the batches [first, last) with `other`, which is empty."""
        if first >= last:
            other.end_position = self._position_after(first - 1)
            return
        position = self._positions[first]
        other.end_position = self._position_after(last - 1)
        other._base_offsets = self._base_offsets[first:last]
        other._positions = self._positions[first:last]
        other._max_timestamps = self._max_timestamps[first:last]
        for piece in self._pieces(position, other.end_position):
            other._extents.append(piece)
            other._extent_positions.append(position)
            position += len(piece)

    def extend(self, other: BatchStore) -> None:
        """Append the batches of `other`: small pieces are copied, large ones are shared."""
        if not other._positions:
            return
        begin = other._positions[0]
        shift = self.end_position - begin
        position = self.end_position
        for piece in other._pieces(begin, other.end_position):
            if len(piece) < VIEW_BYTES_MIN:
                self._copy_in(piece, len(piece), position)
            else:
                self._extents.append(piece)
                self._extent_positions.append(position)
                self._filling = self._filling[self._filling_at :]
                self._filling_at = 0
            position += len(piece)
        count = len(self._base_offsets)
        self._base_offsets.extend(other._base_offsets)
        self._positions.extend(map(shift.__add__, other._positions))
        self._max_timestamps.extend(other._max_timestamps)
        self.end_position = position
        self._settle_maxima(count)

    # -- reading -----------------------------------------------------------------------------------

    def batches(self) -> Iterator[memoryview]:
        """All batches, in order."""
        for index in range(len(self._base_offsets)):
            yield self.batch_at(index)

    @property
    def batch_count(self) -> int:
        return len(self._base_offsets)

    @property
    def held_bytes(self) -> int:
        """The bytes of all batches."""
        return self.end_position - self._positions[0] if self._positions else 0

    def batch_at(self, index: int) -> memoryview:
        positions, starts = self._positions, self._extent_positions
        begin = positions[index]
        index += 1
        end = positions[index] if index < len(positions) else self.end_position
        at = bisect_right(starts, begin) - 1
        start = starts[at]
        return self._extents[at][begin - start : end - start]

    def pieces_of(self, first: int, last: int) -> list[memoryview]:
        """The bytes of the batches [first, last), as views."""
        return self._pieces(self._position_after(first - 1), self._position_after(last - 1))

    def last_offset_at(self, index: int) -> int:
        """The last offset of one batch."""
        return self._last_offset(index)

    def _position_after(self, index: int) -> int:
        """The end position of a batch; for -1, the position of the first batch."""
        following = index + 1
        positions = self._positions
        return positions[following] if following < len(positions) else self.end_position

    def _pieces(self, begin: int, end: int) -> list[memoryview]:
        """The byte ranges between two positions."""
        extents, starts = self._extents, self._extent_positions
        index = bisect_right(starts, begin) - 1
        if begin < end <= (starts[index + 1] if index + 1 < len(starts) else self.end_position):
            start, extent = starts[index], extents[index]
            if begin == start and end - start == len(extent):
                return [extent]
            return [extent[begin - start : end - start]]
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

    def _last_offset(self, index: int) -> int:
        delta: int = _I32.unpack_from(self.batch_at(index), _LAST_OFFSET_DELTA_AT)[0]
        return self._base_offsets[index] + delta

    def _max_timestamp(self, index: int) -> int:
        """The max timestamp of one batch."""
        timestamp: int = _I64.unpack_from(self.batch_at(index), _MAX_TIMESTAMP_AT)[0]
        return timestamp

    # -- removing ----------------------------------------------------------------------------------

    def _cut(self, count: int) -> None:
        """Keep the first `count` batches. Their extents are never written to again."""
        positions = self._positions
        if count < len(positions):
            self.end_position = positions[count]
            if self.file_state is not None:
                self.file_state.cut(self._base_offsets[count])
        del positions[count:]
        del self._base_offsets[count:]
        del self._max_timestamps[count:]
        extents = bisect_left(self._extent_positions, self.end_position)
        del self._extents[extents:]
        del self._extent_positions[extents:]
        self._stop_filling()

    def _drop(self, count: int) -> None:
        """Remove the first `count` batches, and free their memory."""
        if count == len(self._base_offsets):
            del self._extents[:]
            del self._extent_positions[:]
            self._stop_filling()
        else:
            extents = bisect_right(self._extent_positions, self._positions[count]) - 1
            del self._extents[:extents]
            del self._extent_positions[:extents]
        del self._positions[:count]
        del self._base_offsets[:count]
        del self._max_timestamps[:count]
        self._settle_maxima(0)

    def _replace(self, count: int, front: BatchStore) -> int:
        """Replace the first `count` batches by those of `front`.

        The positions of the others stay. Returns the new position of position 0 of `front`.
        """
        boundary = self._position_after(count - 1)
        shift = boundary - front.end_position
        if self.file_state is not None:
            more = count < len(self._base_offsets)
            self.file_state.replaced(self._base_offsets[count] if more else ALL)
        if count == len(self._base_offsets):
            extents, starts = [], []
            self._stop_filling()
        else:
            at = bisect_right(self._extent_positions, boundary) - 1
            extents, starts = self._extents[at:], self._extent_positions[at:]
            extents[0] = extents[0][boundary - starts[0] :]
            starts[0] = boundary
        self._extents = front._extents + extents
        self._extent_positions = [start + shift for start in front._extent_positions] + starts
        moved = array("q", map(shift.__add__, front._positions))
        self._positions = moved + self._positions[count:]
        self._base_offsets = front._base_offsets + self._base_offsets[count:]
        self._max_timestamps = front._max_timestamps + self._max_timestamps[count:]
        self._settle_maxima(len(moved))
        return shift

    def seal(self) -> None:
        """Free the unused memory of the last extent."""
        if self._filling_at:
            self._extents[-1] = memoryview(bytes(self._filling[: self._filling_at]))
        self._stop_filling()

    def _stop_filling(self) -> None:
        self._filling = _NOTHING
        self._filling_at = 0

    def _settle_maxima(self, index: int) -> None:
        """Correct the running maxima from `index` on, because earlier batches have changed.

        If one of them is right, all later ones are.
        """
        maxima = self._max_timestamps
        running = maxima[index - 1] if index else NO_TIMESTAMP
        for at in range(index, len(maxima)):
            running = max(running, self._max_timestamp(at))
            if running == maxima[at]:
                return
            maxima[at] = running
