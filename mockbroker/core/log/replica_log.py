"""The log of one replica: appends, reads, look-ups by timestamp, truncation.

A log has its batches (see `batch_store`), its segments, its leader epochs and the state of its
producers. An append patches the base offset and the leader epoch of a batch; nothing else changes
a batch.

Reads begin at the *log start offset* or above. The memory of batches below it is freed early, but
their segment counts until retention deletes it: Kafka has the file until then, with its size and
its timestamps.

Source: UnifiedLog, LocalLog.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from mockbroker.core.log.batch_store import NO_TIMESTAMP, BatchStore
from mockbroker.core.log.fetched_batches import FetchedBatches
from mockbroker.core.log.leader_epoch_cache import LeaderEpochCache
from mockbroker.core.log.producer_state import ProducerStateManager
from mockbroker.core.log.segments import RollLimits, Segment, Segments
from mockbroker_protocol.records import BatchHeader, batch_payload, scan_records

LOG_OVERHEAD = 12  # base offset and length, which a batch's length field does not include
TIMESTAMP_TYPE_MASK = 0x08
FREE_AT_ONCE_SHARE = 8  # less than 1/8 is freed later, because the rest has to be moved

_PLACE = struct.Struct(">qii")  # base offset, length, leader epoch


class TimestampOffset(NamedTuple):
    """The result of a look-up: a record's timestamp (ms), offset and leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


class LogSlice(NamedTuple):
    """A range of a log for a follower: whole batches, and their leader epochs."""

    batches: BatchStore
    end_offset: int
    epochs: list[tuple[int, int]]
    has_holes: bool


class ReplicaLog(BatchStore):
    """The log of one replica of one partition.

    `start_offset` is the log start offset, `end_offset` the next offset to be appended. High
    watermark, isolation level and other replicas are the partition's.

    `first_dirty_offset` is Kafka's cleaner checkpoint. `cuts` counts the removals and replacements
    of batches, so that work in steps can detect them.
    """

    __slots__ = (
        "_freed_maxima",
        "_has_holes",
        "_segments",
        "cuts",
        "end_offset",
        "epochs",
        "first_dirty_offset",
        "producers",
        "start_offset",
    )

    def __init__(self, start_offset: int = 0) -> None:
        super().__init__()
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.epochs = LeaderEpochCache()
        self.producers = ProducerStateManager()
        self.first_dirty_offset = start_offset
        self.cuts = 0
        self._segments = Segments(start_offset)
        self._has_holes = False
        # Base offset of a segment -> its record with the largest timestamp, if that is freed.
        self._freed_maxima: dict[int, TimestampOffset] = {}

    # -- appending ---------------------------------------------------------------------------------

    def append(
        self,
        batch: memoryview,
        last_offset_delta: int,
        max_timestamp: int,
        leader_epoch: int,
    ) -> int:
        """Append one whole batch; returns its base offset.

        `batch` is a writable view; its first 16 bytes are patched. The log keeps it or copies it.
        No code may write to it later.
        """
        base_offset = self.end_offset
        _PLACE.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch)
        self.put(batch, base_offset, max_timestamp)
        segment_maxima = self._segments.max_timestamps
        if max_timestamp > segment_maxima[-1]:  # noqa: PLR1730 - max() would cost a call
            segment_maxima[-1] = max_timestamp
        self.end_offset = base_offset + last_offset_delta + 1
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        return base_offset

    def maybe_roll(self, size: int, max_timestamp: int, now_ms: int, limits: RollLimits) -> bool:
        """Start a new segment if the limits require it for a batch of `size` bytes.

        Must be called before each append.
        """
        segments = self._segments
        if (
            limits is segments.open_limits
            and self.end_position + size <= segments.open_position
            and 0 <= max_timestamp <= segments.open_timestamp
        ):
            return False
        return segments.admit(
            size, max_timestamp, now_ms, limits, self.end_offset, self.end_position
        )

    def roll(self) -> bool:
        """Start a new segment, unless the active one is empty."""
        if self._segments.positions[-1] == self.end_position:
            return False
        self._segments.roll(self.end_offset, self.end_position)
        return True

    # -- copying -----------------------------------------------------------------------------------

    def fork(self) -> ReplicaLog:
        """An independent copy that shares the memory of the batches."""
        copy = ReplicaLog(self.start_offset)
        self.share_into(copy, 0, len(self._base_offsets))
        copy.end_offset = self.end_offset
        copy.epochs = self.epochs.fork(self.end_offset)
        copy.producers = self.producers.fork()
        copy.first_dirty_offset = self.first_dirty_offset
        copy._segments = self._segments.fork()
        copy._has_holes = self._has_holes
        copy._freed_maxima = dict(self._freed_maxima)
        copy.file_state = None if self.file_state is None else self.file_state.fork()
        return copy

    def read_slice(self, offset: int, bytes_max: int) -> LogSlice | None:
        """Whole batches from `offset` on for a follower; None at the log end.

        They have at most `bytes_max` bytes, but always one batch.
        """
        if offset >= self.end_offset:
            return None
        first, last = self.batch_range(offset, self.end_offset)
        if first < last:
            limit = self._positions[first] + bytes_max
            last = max(bisect_right(self._positions, limit, first, last) - 1, first + 1)
            if self._position_after(len(self._positions) - 1) <= limit:
                last = len(self._positions)
        whole = last == len(self._base_offsets)
        end = self.end_offset if whole else self._base_offsets[last]
        batches = BatchStore()
        self.share_into(batches, first, last)
        return LogSlice(batches, end, self.epochs.between(offset, end), self._has_holes)

    def append_slice(self, taken: LogSlice, now_ms: int, limits: RollLimits) -> None:
        """Append a slice of the leader's log that begins at this log's end."""
        position = self.end_position
        segments = self._segments
        for batch in taken.batches.batches():
            header = BatchHeader(batch)
            size, timestamp = len(batch), header.max_timestamp
            if not (
                limits is segments.open_limits
                and position + size <= segments.open_position
                and 0 <= timestamp <= segments.open_timestamp
            ):
                segments.admit(size, timestamp, now_ms, limits, header.base_offset, position)
            segments.max_timestamps[-1] = max(segments.max_timestamps[-1], timestamp)
            position += size
            if header.producer_id >= 0:
                self.producers.replay(batch, header)
        self.extend(taken.batches)
        self.end_offset = taken.end_offset
        self._has_holes = self._has_holes or taken.has_holes
        for epoch, start_offset in taken.epochs:
            if epoch > self.epochs.latest:
                self.epochs.assign(epoch, start_offset)

    # -- reading -----------------------------------------------------------------------------------

    def read(
        self, offset: int, upper_offset: int, bytes_max: int, *, at_least_one: bool
    ) -> tuple[list[memoryview], int]:
        """Whole batches from that of `offset` up to `upper_offset`: (pieces, bytes).

        They have at most `bytes_max` bytes; with `at_least_one` the first batch may be larger
        (KIP-74). The pieces are views.
        """
        first, last = self.batch_range(offset, upper_offset)
        if first >= last:
            return [], 0
        positions = self._positions
        begin = positions[first]
        end = positions[last] if last < len(positions) else self.end_position
        if end - begin > bytes_max:
            # The batches that end within the limit, or the first one.
            last = bisect_right(positions, begin + bytes_max, first, last) - 1
            if last <= first:
                if not at_least_one:
                    return [], 0
                last = first + 1
            end = positions[last] if last < len(positions) else self.end_position
        return self._pieces(begin, end), end - begin

    def batches_read(self, offset: int, size: int) -> FetchedBatches:
        """The batches of a read from `offset` that returned `size` bytes."""
        first, _ = self.batch_range(offset, offset)
        positions = self._positions
        begin = positions[first] if size else 0
        last = bisect_left(positions, begin + size, first) if size else first
        return FetchedBatches(self, first, self._base_offsets[first:last])

    def bytes_between(self, offset: int, upper_offset: int) -> int:
        """The bytes of the batches from that of `offset` up to `upper_offset`."""
        first, last = self.batch_range(offset, upper_offset)
        if first >= last:
            return 0
        positions = self._positions
        end = positions[last] if last < len(positions) else self.end_position
        return end - positions[first]

    def batch_offset(self, offset: int) -> int:
        """The base offset of the batch of `offset`; at the log end, the log end offset."""
        first, _ = self.batch_range(offset, self.end_offset)
        offsets = self._base_offsets
        return offsets[first] if first < len(offsets) else self.end_offset

    def offset_after(self, offset: int, size: int) -> int:
        """The next offset after a read from `offset` that returned `size` bytes."""
        positions = self._positions
        first, _ = self.batch_range(offset, offset)
        following = bisect_left(positions, positions[first] + size)
        return self._base_offsets[following] if following < len(positions) else self.end_offset

    def batch_range(self, offset: int, upper_offset: int) -> tuple[int, int]:
        """The indexes of the batch of `offset` and of the first batch from `upper_offset` on."""
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

    @property
    def size(self) -> int:
        """The bytes of all segments, also below the log start offset."""
        return self.end_position - self._segments.positions[0]

    @property
    def segments(self) -> list[Segment]:
        """The segments, oldest first; the last one is active."""
        return self._segments.listed(self.end_position)

    @property
    def layout(self) -> Segments:
        """The segments, for retention and compaction. The caller must not change them."""
        return self._segments

    # -- looking up timestamps ---------------------------------------------------------------------

    def find_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record from the log start on with at least this `timestamp` (ms), or None.

        Only batches with a sufficient max timestamp are decoded. Raises RecordsError for a corrupt
        batch, which the leader may have accepted without decoding it.
        """
        maxima = self._max_timestamps
        first_live, count = self.batch_range(self.start_offset, self.end_offset)
        index = max(bisect_left(maxima, timestamp), first_live)
        while index < count:
            if self._max_timestamp(index) >= timestamp:
                found = self._find_in(self.batch_at(index), timestamp)
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
        """The first record with the largest timestamp of the log, or None without records.

        As in Kafka it may be below the log start offset, if its segment still exists.
        """
        freed = max(self._freed_maxima.values(), key=_by_timestamp, default=None)
        maxima = self._max_timestamps
        if not maxima or (freed is not None and freed.timestamp >= maxima[-1]):
            return freed
        return self._first_with(bisect_left(maxima, maxima[-1]), maxima[-1])

    def _first_with(self, index: int, timestamp: int) -> TimestampOffset | None:
        """The first record of one batch with this timestamp."""
        for found in _timestamps(self.batch_at(index)):
            if found.timestamp == timestamp:
                return found
        return None

    # -- the log start -----------------------------------------------------------------------------

    def move_start(self, offset: int) -> bool:
        """Raise the log start offset; returns False if it is not lower."""
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.log_start_moved(offset)
        if self.batch_range(offset, offset)[0] * FREE_AT_ONCE_SHARE >= len(self._base_offsets):
            self.free()
        return True

    def free(self) -> None:
        """Free the batches below the log start. The segments stay."""
        count = self.batch_range(self.start_offset, self.start_offset)[0]
        if count:
            self._remember_maxima(count)
            self._drop(count)
            self.cuts += 1

    def _remember_maxima(self, count: int) -> None:
        """Note each segment's record with the largest timestamp, if it will be freed."""
        segments = self._segments
        low = 0
        for index, base_offset in enumerate(segments.base_offsets):
            high = count
            if index + 1 < len(segments):
                following = segments.base_offsets[index + 1]
                high = bisect_left(self._base_offsets, following, low, count)
            if base_offset not in self._freed_maxima:
                wanted = segments.max_timestamps[index]
                at = next((i for i in range(low, high) if self._max_timestamp(i) == wanted), -1)
                found = None if at < 0 else self._first_with(at, wanted)
                if found is not None:
                    self._freed_maxima[base_offset] = found
            low = high
            if low == count:
                return

    def drop_segments(self, count: int) -> None:
        """Delete the oldest `count` segments, not the active one.

        The log start is at least the base offset of the next segment then.
        """
        first = self._segments.base_offsets[count]
        self._drop(bisect_left(self._base_offsets, first))
        self._segments.drop(count)
        self._forget_maxima(first)
        self.cuts += 1
        self.move_start(first)

    def _forget_maxima(self, offset: int) -> None:
        """Drop the notes of the segments below `offset`, which are deleted."""
        for base_offset in [found for found in self._freed_maxima if found < offset]:
            del self._freed_maxima[base_offset]

    def replace_segments(self, count: int, batches: BatchStore, layout: Segments) -> None:
        """Replace the first `count` segments, not the active one, by cleaned ones.

        Offsets and the log start offset do not change.
        """
        first = self._segments.base_offsets[count]
        shift = self._replace(bisect_left(self._base_offsets, first), batches)
        self._segments.replace(count, layout, shift)
        self._forget_maxima(first)
        self._has_holes = True
        self.cuts += 1

    # -- truncation --------------------------------------------------------------------------------

    def truncate(self, offset: int) -> bool:
        """Remove each batch that reaches `offset`; returns False if the log ends before it.

        The log end offset becomes `offset` (LocalLog.truncateTo). Producer state is rebuilt from
        the remaining batches. Leader epochs without a record are removed in any case: a broker
        that has led without an append has one at its log end (UnifiedLog.truncateTo).
        """
        if offset >= self.end_offset:
            self.epochs.truncate_from_end(self.end_offset)
            return False
        if offset < self._segments.base_offsets[0]:
            self.truncate_fully(offset)
            return True
        count = bisect_left(self._base_offsets, offset)
        if count and self._last_offset(count - 1) >= offset:
            count -= 1
            self._has_holes = True
        self._cut(count)
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self.cuts += 1
        segments = self._segments
        segments.truncate(offset)
        active = range(bisect_left(self._base_offsets, segments.base_offsets[-1]), count)
        segments.max_timestamps[-1] = max(map(self._max_timestamp, active), default=NO_TIMESTAMP)
        self.epochs.truncate_from_end(offset)
        self._replay_producers()
        return True

    def truncate_fully(self, offset: int) -> None:
        """Remove all batches; the log starts again at `offset`."""
        self._cut(0)
        self.start_offset = self.end_offset = self.first_dirty_offset = offset
        self.cuts += 1
        self._segments = Segments(offset, self.end_position)
        self._freed_maxima.clear()
        self.epochs.truncate_from_end(0)
        self.producers.clear()

    def high_watermark_moved(self, former: int, offset: int) -> None:
        """Update the producers' state after a move of the high watermark, also backwards.

        Markers above it hold back the last stable offset again.
        """
        if former > offset and self.producers.last_marker >= offset:
            self._replay_producers()
        self.producers.high_watermark_moved(offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset of an open transaction below the high watermark, or the latter."""
        unstable = self.producers.first_unstable_offset()
        if unstable < 0:
            return high_watermark
        return min(max(unstable, self.start_offset), high_watermark)

    def _replay_producers(self) -> None:
        """Rebuild the producers' state from the batches, and keep that of removed batches."""
        first = self._base_offsets[0] if self._base_offsets else self.end_offset
        self.producers.remove_from(first)
        for batch in self.batches():
            self.producers.replay(batch)


def _by_timestamp(found: TimestampOffset) -> tuple[int, int]:
    return found.timestamp, -found.offset


def _timestamps(batch: memoryview) -> Iterator[TimestampOffset]:
    """The timestamp and offset of each record of one batch."""
    header = BatchHeader(batch)
    base_offset, epoch = header.base_offset, header.leader_epoch
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
    for span in scan_records(batch_payload(header, batch), header.count):
        timestamp = (
            header.base_timestamp + span.timestamp_delta if append_time is None else append_time
        )
        yield TimestampOffset(timestamp, base_offset + span.offset_delta, epoch)
