"""The segments of one log.

In Kafka a *segment* is a file. Batches are appended to the last one, the *active* segment, which is
never compacted. Here a segment has no bytes: it is its base offset, its position, its largest
timestamp and the time of its last append, which retention and compaction use.

Source: LogSegment, LocalLog.roll, RollParams.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

NO_TIMESTAMP = -1
OFFSET_INDEX_ENTRY_BYTES = 8
TIME_INDEX_ENTRY_BYTES = 12


class Segment(NamedTuple):
    """A segment: its base offset and its size in bytes."""

    base_offset: int
    size: int


class RollLimits(NamedTuple):
    """The limits of a segment; the values are the topic configs with these names (RollParams)."""

    segment_bytes: int
    segment_ms: int
    index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096


class Segments:
    """The segments of one log, oldest first. The active segment always exists.

    The lists have one entry per segment. `positions` are those of the log.
    """

    __slots__ = (
        "_index_entries",
        "_indexed_position",
        "_indexed_timestamp",
        "_started_ms",
        "_time_index_entries",
        "base_offsets",
        "first_timestamps",
        "max_timestamps",
        "modified_ms",
        "open_limits",
        "open_position",
        "open_timestamp",
        "positions",
    )

    def __init__(self, base_offset: int, position: int = 0) -> None:
        self.base_offsets = [base_offset]
        self.positions = [position]
        self.first_timestamps = [NO_TIMESTAMP]
        self.max_timestamps = [NO_TIMESTAMP]
        self.modified_ms = [NO_TIMESTAMP]
        self._begin()

    def _begin(self) -> None:
        """Reset the fields of the active segment, which is empty."""
        self._started_ms = NO_TIMESTAMP
        self._index_entries = 0
        self._time_index_entries = 0
        self._indexed_timestamp = NO_TIMESTAMP
        self._indexed_position = self.positions[-1]
        # The fast path: with these limits, a batch up to this position and this timestamp belongs
        # to the active segment and changes no field here.
        self.open_limits: RollLimits | None = None
        self.open_position = 0
        self.open_timestamp = NO_TIMESTAMP

    def fork(self) -> Segments:
        """An independent copy."""
        copy = Segments.__new__(Segments)
        copy.base_offsets = self.base_offsets[:]
        copy.positions = self.positions[:]
        copy.first_timestamps = self.first_timestamps[:]
        copy.max_timestamps = self.max_timestamps[:]
        copy.modified_ms = self.modified_ms[:]
        copy._begin()
        copy._index_entries = self._index_entries
        copy._indexed_position = self._indexed_position
        copy._indexed_timestamp = self._indexed_timestamp
        copy._started_ms = self._started_ms
        copy._time_index_entries = self._time_index_entries
        return copy

    def __len__(self) -> int:
        return len(self.base_offsets)

    def size(self, index: int, end_position: int) -> int:
        """The bytes of one segment, if the log ends at `end_position`."""
        following = index + 1
        positions = self.positions
        end = positions[following] if following < len(positions) else end_position
        return end - positions[index]

    def listed(self, end_position: int) -> list[Segment]:
        """All segments, if the log ends at `end_position`."""
        return [
            Segment(offset, self.size(index, end_position))
            for index, offset in enumerate(self.base_offsets)
        ]

    def index_of(self, offset: int) -> int:
        """The index of the segment of an offset; that of lower offsets is 0."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)

    def largest_timestamp(self, index: int) -> int:
        """The timestamp that decides a segment's age: its largest, or the time of its last append.

        -1 for a segment without both (LogSegment.largestTimestamp).
        """
        timestamp = self.max_timestamps[index]
        return timestamp if timestamp >= 0 else self.modified_ms[index]

    # -- appending ---------------------------------------------------------------------------------

    def admit(
        self,
        size: int,
        max_timestamp: int,
        now_ms: int,
        limits: RollLimits,
        end_offset: int,
        end_position: int,
    ) -> bool:
        """Prepare the append of a batch of `size` bytes.

        Returns True if a new segment begins with it (LogSegment.shouldRoll): the active one would
        exceed its limit, its index is full, or it is too old.
        """
        rolled = False
        is_first = end_position == self.positions[-1]
        if not is_first and self._should_roll(size, max_timestamp, now_ms, limits, end_position):
            self.roll(end_offset, end_position)
            is_first = rolled = True
        if is_first:
            self.first_timestamps[-1] = max_timestamp
            self._started_ms = now_ms
        self.modified_ms[-1] = now_ms
        if end_position - self._indexed_position > limits.index_interval_bytes:
            self._index(end_position)
        self._set_fast_path(limits)
        return rolled

    def _set_fast_path(self, limits: RollLimits) -> None:
        """Compute the position and timestamp up to which batches need no check."""
        until_full = self.positions[-1] + limits.segment_bytes
        until_indexed = self._indexed_position + limits.index_interval_bytes
        self.open_limits = limits
        self.open_position = min(until_full, until_indexed)
        first_timestamp = self.first_timestamps[-1]
        waits = first_timestamp >= 0 and not self._index_is_full(limits)
        self.open_timestamp = first_timestamp + limits.segment_ms if waits else NO_TIMESTAMP

    def _should_roll(
        self, size: int, max_timestamp: int, now_ms: int, limits: RollLimits, end_position: int
    ) -> bool:
        if end_position - self.positions[-1] + size > limits.segment_bytes:
            return True
        # The age counts from the first batch's timestamp, or from its append without one.
        first_timestamp = self.first_timestamps[-1]
        if first_timestamp >= 0:
            waited_ms = max_timestamp - first_timestamp
        else:
            waited_ms = now_ms - self._started_ms
        if waited_ms > limits.segment_ms:
            return True
        return self._index_is_full(limits)

    def _index_is_full(self, limits: RollLimits) -> bool:
        return self._index_entries > 0 and (
            self._index_entries >= limits.index_bytes // OFFSET_INDEX_ENTRY_BYTES
            or self._time_index_entries >= limits.index_bytes // TIME_INDEX_ENTRY_BYTES - 1
        )

    def _index(self, end_position: int) -> None:
        """Count an entry of the sparse indexes, which get one every index.interval.bytes."""
        self._indexed_position = end_position
        self._index_entries += 1
        timestamp = self.max_timestamps[-1]
        if timestamp > self._indexed_timestamp:
            self._indexed_timestamp = timestamp
            self._time_index_entries += 1

    def roll(self, end_offset: int, end_position: int) -> None:
        """Start a new active segment at the log end."""
        self.base_offsets.append(end_offset)
        self.positions.append(end_position)
        self.first_timestamps.append(NO_TIMESTAMP)
        self.max_timestamps.append(NO_TIMESTAMP)
        self.modified_ms.append(NO_TIMESTAMP)
        self._begin()

    # -- removing ----------------------------------------------------------------------------------

    def truncate(self, offset: int) -> None:
        """Remove the segments that begin above `offset`; the one before them is active then.

        The caller sets its `max_timestamps[-1]`.
        """
        self.open_limits = None
        count = max(bisect_right(self.base_offsets, offset), 1)
        if count == len(self.base_offsets):
            return
        self._keep(0, count)
        self._begin()
        self._started_ms = self.modified_ms[-1]

    def drop(self, count: int) -> None:
        """Remove the first `count` segments, not the active one."""
        self._keep(count, len(self.base_offsets))

    def _keep(self, begin: int, end: int) -> None:
        for column in self._columns():
            column[:] = column[begin:end]

    def _columns(self) -> tuple[list[int], ...]:
        return (
            self.base_offsets,
            self.positions,
            self.first_timestamps,
            self.max_timestamps,
            self.modified_ms,
        )

    def replace(self, count: int, cleaned: Segments, shift: int) -> None:
        """Replace the first `count` segments by those of `cleaned`, shifted by `shift` bytes."""
        cleaned.positions = [position + shift for position in cleaned.positions]
        for column, replacement in zip(self._columns(), cleaned._columns(), strict=True):
            column[:count] = replacement
