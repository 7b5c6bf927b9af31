"""The segments of one log: where one file would end and the next begin, and how old each one is.

A *segment* is a run of batches that Kafka keeps in one file. The last one is *active*: it alone
grows, and it alone is never compacted. Here a segment is only its bounds, in offsets and in
positions, its largest timestamp, and when it was last written to: what retention and compaction
decide by.

Source: LogSegment, LocalLog.roll, RollParams.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

NO_TIMESTAMP = -1
OFFSET_INDEX_ENTRY_BYTES = 8
TIME_INDEX_ENTRY_BYTES = 12


class Segment(NamedTuple):
    """What would be one file: offsets from `base_offset` on, `size` bytes."""

    base_offset: int
    size: int


class RollLimits(NamedTuple):
    """When a segment is full or too old; the values are a topic's configs of like names."""

    segment_bytes: int
    segment_ms: int
    index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096


class Segments:
    """The segments of one log, oldest first; there is always an active one.

    The lists run in parallel, one entry per segment. `positions` count bytes as the log does.
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
        """What else is known of an active segment that nothing was appended to yet."""
        self._started_ms = NO_TIMESTAMP
        self._index_entries = 0
        self._time_index_entries = 0
        self._indexed_timestamp = NO_TIMESTAMP
        self._indexed_position = self.positions[-1]
        # Under these limits a batch that ends by this position, with a timestamp up to this one,
        # belongs into the active segment and changes nothing here: most batches stop at that.
        self.open_limits: RollLimits | None = None
        self.open_position = 0
        self.open_timestamp = NO_TIMESTAMP

    def fork(self) -> Segments:
        """A copy that goes its own way."""
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
        """Bytes of one segment of a log that ends at `end_position`."""
        following = index + 1
        positions = self.positions
        end = positions[following] if following < len(positions) else end_position
        return end - positions[index]

    def listed(self, end_position: int) -> list[Segment]:
        """All of them, for a log that ends at `end_position`."""
        return [
            Segment(offset, self.size(index, end_position))
            for index, offset in enumerate(self.base_offsets)
        ]

    def index_of(self, offset: int) -> int:
        """Which segment an offset belongs to; offsets below all of them belong to the first."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)

    def largest_timestamp(self, index: int) -> int:
        """By which a segment's age is told: its largest timestamp, or when it was last written to.

        -1 for a segment without either (LogSegment.largestTimestamp).
        """
        timestamp = self.max_timestamps[index]
        return timestamp if timestamp >= 0 else self.modified_ms[index]

    # -- growing -----------------------------------------------------------------------------------

    def admit(
        self,
        size: int,
        max_timestamp: int,
        now_ms: int,
        limits: RollLimits,
        end_offset: int,
        end_position: int,
    ) -> bool:
        """Make room for a batch of `size` bytes that will be appended at the log's end.

        True if a new segment begins with it (LogSegment.shouldRoll): when the active one would
        exceed its limit, when its index is full, or when it is too old.
        """
        rolled = False
        begins = end_position == self.positions[-1]
        if not begins and self._is_done(size, max_timestamp, now_ms, limits, end_position):
            self.roll(end_offset, end_position)
            begins = rolled = True
        if begins:
            self.first_timestamps[-1] = max_timestamp
            self._started_ms = now_ms
        self.modified_ms[-1] = now_ms
        if end_position - self._indexed_position > limits.index_interval_bytes:
            self._index(end_position)
        self._open(limits)
        return rolled

    def _open(self, limits: RollLimits) -> None:
        """Work out what may be appended without asking again."""
        until_full = self.positions[-1] + limits.segment_bytes
        until_indexed = self._indexed_position + limits.index_interval_bytes
        self.open_limits = limits
        self.open_position = min(until_full, until_indexed)
        first_timestamp = self.first_timestamps[-1]
        waits = first_timestamp >= 0 and not self._index_is_full(limits)
        self.open_timestamp = first_timestamp + limits.segment_ms if waits else NO_TIMESTAMP

    def _is_done(
        self, size: int, max_timestamp: int, now_ms: int, limits: RollLimits, end_position: int
    ) -> bool:
        if end_position - self.positions[-1] + size > limits.segment_bytes:
            return True
        # The age is that of the first batch, or of the segment if that has no timestamp.
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
        """Count what the sparse indexes would hold: an entry for every so many bytes."""
        self._indexed_position = end_position
        self._index_entries += 1
        timestamp = self.max_timestamps[-1]
        if timestamp > self._indexed_timestamp:
            self._indexed_timestamp = timestamp
            self._time_index_entries += 1

    def roll(self, end_offset: int, end_position: int) -> None:
        """Begin a new active segment at the log's end."""
        self.base_offsets.append(end_offset)
        self.positions.append(end_position)
        self.first_timestamps.append(NO_TIMESTAMP)
        self.max_timestamps.append(NO_TIMESTAMP)
        self.modified_ms.append(NO_TIMESTAMP)
        self._begin()

    # -- shrinking ---------------------------------------------------------------------------------

    def truncate(self, offset: int) -> None:
        """Forget the segments that begin above `offset`; the one before them is active again.

        The caller then sets `max_timestamps[-1]` to what is left in it.
        """
        self.open_limits = None
        count = max(bisect_right(self.base_offsets, offset), 1)
        if count == len(self.base_offsets):
            return
        self._keep(0, count)
        self._begin()
        self._started_ms = self.modified_ms[-1]

    def drop(self, count: int) -> None:
        """Forget the first `count` segments; the active one must not be among them."""
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
        """Put all segments of `cleaned` in place of the first `count`.

        What was at position 0 there is at position `shift` here.
        """
        cleaned.positions = [position + shift for position in cleaned.positions]
        for column, taken in zip(self._columns(), cleaned._columns(), strict=True):
            column[:count] = taken
