"""The compaction of one log: of each key only the newest record is retained.

Records from the *first dirty offset* on are not cleaned yet. Records from the *first uncleanable
offset* on cannot be cleaned: they are in the active segment, above the last stable offset, or
younger than min.compaction.lag.ms. A cleaning has two passes. The first builds the offset map of
the dirty part: the newest record of each key, up to the number of keys for which
log.cleaner.dedupe.buffer.size has room. The second rewrites the log up to the end of the first
pass. It drops records with a newer one, records of aborted transactions, and tombstones and markers
after their *delete horizon*, which the cleaner sets when it first reads them (KIP-534). The new
segments replace the old ones in one step. Offsets never change.

A batch without retained records is kept, empty, if it is the last one of its producer or of the
cleaned part. The producer's next sequence depends on the first, the end of the cleaned part on the
second.

A cleaning works in steps, so that clients are served in between. If retention or truncation removes
batches meanwhile, the cleaning ends without effect (Kafka: LogCleaningAbortedException).

Source: Cleaner, LogCleanerManager.cleanableOffsets, LogToClean.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from mockbroker.core.log.batch_store import BatchStore
from mockbroker.core.log.cleaned_transaction_metadata import CleanedTransactionMetadata
from mockbroker.core.log.compacted_batch import emptied, rebuild
from mockbroker.core.log.segments import Segments
from mockbroker_protocol.records import BatchHeader, batch_payload
from mockbroker_protocol.records.keys import KeySpan, scan_keys

if TYPE_CHECKING:
    from mockbroker.core.configs.values import TopicConfigs
    from mockbroker.core.log.replica_log import ReplicaLog

RECORDS_PER_TURN = 512
RECORDS_PER_BATCH = 4  # the cost of a batch in records, in addition to that of its records
_DELTA_BITS = 31  # the bits of the offset delta in an entry of the offset map


class LogToClean(NamedTuple):
    """The part of a log to clean (LogToClean); the bytes are those of whole segments."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    need_compaction_now: bool  # a record is older than max.compaction.lag.ms

    @property
    def ratio(self) -> float:
        """The dirty ratio, for min.cleanable.dirty.ratio."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, configs: TopicConfigs) -> bool:
        """Whether a round of the cleaner cleans this log."""
        if self.need_compaction_now and self.cleanable_bytes:
            return True
        return self.ratio > configs.min_cleanable_dirty_ratio


class CleanerStats(msgspec.Struct, frozen=True, gc=False):
    """The result of one cleaning (CleanerStats). Offsets below `end_offset` are clean."""

    records_read: int
    records_removed: int
    batches_removed: int
    bytes_removed: int
    end_offset: int


# (log, index of a segment) -> the ms by which the cleaner's clock was ahead of the cluster's at the
# last append to the segment.
SkewOf: TypeAlias = "Callable[[ReplicaLog, int], int]"


def _no_skew(_log: ReplicaLog, _index: int) -> int:
    return 0


def log_to_clean(
    log: ReplicaLog,
    configs: TopicConfigs,
    last_stable_offset: int,
    now_ms: int,
    skew_of: SkewOf = _no_skew,
) -> LogToClean:
    """The part of a log that can be cleaned at `now_ms` on the cleaner's clock."""
    layout = log.layout
    active = len(layout) - 1
    dirty = log.first_dirty_offset
    if not log.start_offset <= dirty <= log.end_offset:
        dirty = log.start_offset
    first = min(layout.index_of(dirty), active)
    limit = min(last_stable_offset, layout.base_offsets[active])
    if configs.min_compaction_lag_ms > 0:
        settled_ms = now_ms - configs.min_compaction_lag_ms
        for index in range(first, active):
            if layout.largest_timestamp(index) + skew_of(log, index) > settled_ms:
                limit = min(limit, layout.base_offsets[index])
                break
    # Only whole segments are cleaned.
    end = min(layout.index_of(max(dirty, limit)), active)
    clean = bisect_left(layout.base_offsets, dirty)
    sizes = [layout.size(index, log.end_position) for index in range(active)]
    late_ms = now_ms - configs.max_compaction_lag_ms
    # A segment without a timestamp has no max.compaction.lag.ms.
    late = any(
        0 < layout.first_timestamps[index] < late_ms - skew_of(log, index)
        for index in range(first, active)
    )
    return LogToClean(
        dirty,
        layout.base_offsets[end],
        sum(sizes[:clean]),
        sum(sizes[first:end]),
        late,
    )


def next_due_ms(
    log: ReplicaLog, configs: TopicConfigs, now_ms: int, skew_of: SkewOf = _no_skew
) -> int | None:
    """The next time at which a lag config makes more of a log cleanable, or None."""
    layout = log.layout
    times = []
    for index in range(layout.index_of(log.first_dirty_offset), len(layout) - 1):
        skew_ms = skew_of(log, index)
        times.append(layout.largest_timestamp(index) + skew_ms + configs.min_compaction_lag_ms)
        times.append(layout.first_timestamps[index] + skew_ms + configs.max_compaction_lag_ms + 1)
    return min((at_ms for at_ms in times if at_ms > now_ms), default=None)


class Cleaning:
    """One cleaning of one log. `result` is None until it is complete, and if it was aborted.

    `keys_max` limits the keys of the first pass, `dirt` its offsets.
    """

    def __init__(
        self, log: ReplicaLog, dirt: LogToClean, configs: TopicConfigs, now_ms: int, keys_max: int
    ) -> None:
        self.result: CleanerStats | None = None
        # The removed offsets without those of markers: first and last offset of each range.
        self.removed = array("q")
        self._log = log
        self._cuts = log.cuts
        self._dirt = dirt
        self._now_ms = now_ms
        self._delete_retention_ms = configs.delete_retention_ms
        self._segment_bytes = configs.roll_limits.segment_bytes
        self._keys_max = keys_max
        # Key -> batch index and offset delta of its newest record, in one number.
        self._offset_map: dict[bytes, int] = {}
        self._first_indexed = self._end_indexed = 0
        self._superseded = array(
            "i"
        )  # per indexed batch: records with a newer one, or without a key
        self._with_tombstones: set[int] = set()
        self._end_offset = dirt.first_dirty_offset
        self._transactions = CleanedTransactionMetadata(())
        self._last_of_producer: dict[int, tuple[int, int]] = {}
        self._output = BatchStore()
        self._records_read = self._records_kept = 0
        self._work = self._clean()

    def step(self, records_max: int) -> bool:
        """Work on about `records_max` records; returns True if nothing is left to do.

        Raises RecordsError for a batch that cannot be decoded.
        """
        if self._log.cuts != self._cuts:
            return True
        for records in self._work:
            records_max -= records
            if records_max <= 0:
                return False
        return True

    def _clean(self) -> Iterator[int]:
        """Both passes, and the replacement. Yields the number of records read, as it goes."""
        log, dirt = self._log, self._dirt
        yield from self._build_offset_map()
        count = bisect_left(log.layout.base_offsets, self._end_offset)
        count = min(count, bisect_left(log.layout.base_offsets, dirt.first_uncleanable_offset))
        if count:
            yield from self._clean_segments(count)
        elif self._end_offset > dirt.first_dirty_offset:
            log.first_dirty_offset = self._end_offset

    # -- the first pass ----------------------------------------------------------------------------

    def _build_offset_map(self) -> Iterator[int]:
        """The first pass: find the newest record of each key in the dirty part."""
        log, start = self._log, self._dirt.first_dirty_offset
        first, end = log.batch_range(start, self._dirt.first_uncleanable_offset)
        # Without those that ended earlier: their producers may have other transactions since.
        aborted = [entry for entry in log.producers.aborted if entry.last_offset >= start]
        transactions = CleanedTransactionMetadata(aborted)
        self._first_indexed = self._end_indexed = first
        self._superseded = array("i", bytes(4 * (end - first)))
        for index in range(first, end):
            yield RECORDS_PER_BATCH
            batch = log.batch_at(index)
            header = BatchHeader(batch)
            if header.is_control:
                transactions.on_control_batch_read(header, batch)
            elif not transactions.on_batch_read(header):
                payload = batch_payload(header, batch)
                at = 0
                for begin in range(0, header.count, RECORDS_PER_TURN):
                    spans = scan_keys(payload, at, min(RECORDS_PER_TURN, header.count - begin))
                    at = spans[-1][1]
                    if not self._add_to_offset_map(index, spans, start - header.base_offset):
                        return
                    yield len(spans)
            self._end_indexed = index + 1
            self._end_offset = max(self._end_offset, header.next_offset)
        self._end_offset = self._dirt.first_uncleanable_offset

    def _add_to_offset_map(self, index: int, spans: list[KeySpan], first_delta: int) -> bool:
        """Add records of one batch; returns False if there are too many keys."""
        newest, superseded, first = self._offset_map, self._superseded, self._first_indexed
        place = index << _DELTA_BITS
        for _, _, _, _, delta, key, has_value in spans:
            if key is None:
                superseded[index - first] += 1
                continue
            if not has_value:
                self._with_tombstones.add(index)
            if delta < first_delta:
                continue
            older = newest.get(key)
            if older is not None:
                superseded[(older >> _DELTA_BITS) - first] += 1
            elif len(newest) >= self._keys_max:
                return False
            newest[key] = place | delta
        return True

    # -- the second pass ---------------------------------------------------------------------------

    def _clean_segments(self, segment_count: int) -> Iterator[int]:
        """The second pass: rewrite the first segments and replace them."""
        log = self._log
        old_layout = log.layout
        old_bytes = old_layout.positions[segment_count] - old_layout.positions[0]
        self._transactions = CleanedTransactionMetadata(log.producers.aborted)
        self._last_of_producer = {
            producer_id: (entry.batches[-1].last_offset if entry.batches else -1, entry.epoch)
            for producer_id, entry in log.producers.entries.items()
        }
        groups = self._group_segments(segment_count)
        layout = Segments(old_layout.base_offsets[0])
        batches = 0
        for group in groups:
            if group is not groups[0]:
                layout.roll(old_layout.base_offsets[group[0]], self._output.end_position)
            begin = old_layout.base_offsets[group[0]]
            end = old_layout.base_offsets[group[-1] + 1]
            for index in range(*log.batch_range(begin, end)):
                yield from self._rewrite_batch(index, layout)
                batches += 1
            layout.modified_ms[-1] = old_layout.modified_ms[group[-1]]
        self._output.seal()
        end_offset = old_layout.base_offsets[segment_count]
        log.replace_segments(segment_count, self._output, layout)
        log.first_dirty_offset = self._end_offset
        log.producers.aborted = self._transactions.kept_aborted + [
            entry for entry in log.producers.aborted if entry.last_offset >= end_offset
        ]
        self.result = CleanerStats(
            self._records_read,
            self._records_read - self._records_kept,
            batches - self._output.batch_count,
            old_bytes - self._output.end_position,
            self._end_offset,
        )

    def _group_segments(self, segment_count: int) -> list[list[int]]:
        """Adjacent segments that become one, so that segments do not become ever smaller
        (Cleaner.groupSegmentsBySize).
        """
        log = self._log
        groups: list[list[int]] = []
        size = 0
        for index in range(segment_count):
            more = log.layout.size(index, log.end_position)
            if groups and size + more <= self._segment_bytes:
                groups[-1].append(index)
                size += more
            else:
                groups.append([index])
                size = more
        return groups

    def _rewrite_batch(self, index: int, layout: Segments) -> Iterator[int]:
        """Append the retained part of one batch to the output."""
        yield RECORDS_PER_BATCH
        batch = self._log.batch_at(index)
        header = BatchHeader(batch)
        self._records_read += header.count
        removes_empty = not self._retains_empty(header)
        copy: memoryview | bytearray | None
        if header.is_control:
            copy = self._marker(header, batch)
        elif self._transactions.on_batch_read(header):
            copy = None
        else:
            copy = yield from self._retained(index, header, batch)
        if copy is None and header.count and not header.is_control:
            self._note_removed(header.base_offset, header.last_offset)
        if copy is None:
            if removes_empty:
                return
            copy = emptied(header)
        view = memoryview(copy)
        left = header if copy is batch else BatchHeader(view)
        self._records_kept += left.count
        if layout.positions[-1] == self._output.end_position:
            layout.first_timestamps[-1] = left.max_timestamp
        layout.max_timestamps[-1] = max(layout.max_timestamps[-1], left.max_timestamp)
        self._output.put(view, left.base_offset, left.max_timestamp)

    def _retains_empty(self, header: BatchHeader) -> bool:
        """Whether a batch is retained without records."""
        if header.next_offset == self._dirt.first_uncleanable_offset:
            return True
        last = self._last_of_producer.get(header.producer_id)
        if header.producer_id < 0 or last is None:
            return False
        last_offset, epoch = last
        if last_offset >= 0:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == epoch

    def _marker(self, header: BatchHeader, batch: memoryview) -> memoryview | bytearray | None:
        if not self._transactions.on_control_batch_read(header, batch):
            return batch
        if header.has_delete_horizon:
            return None if header.base_timestamp <= self._now_ms else batch
        if not header.count:
            return None
        payload = batch_payload(header, batch)
        return rebuild(header, payload, scan_keys(payload, 0, header.count), self._horizon_ms)

    @property
    def _horizon_ms(self) -> int:
        return self._now_ms + self._delete_retention_ms

    def _retained(
        self, index: int, header: BatchHeader, batch: memoryview
    ) -> Generator[int, None, memoryview | bytearray | None]:
        """The retained part of a data batch: the batch, a copy with fewer records, or None."""
        if index >= self._end_indexed:
            return batch
        first_dirty = self._dirt.first_dirty_offset
        if index >= self._first_indexed and header.base_offset >= first_dirty:
            superseded = self._superseded[index - self._first_indexed]
            if superseded == header.count:
                return None
            if not superseded and index not in self._with_tombstones:
                return batch
        payload = batch_payload(header, batch)
        kept: list[KeySpan] = []
        at = 0
        for begin in range(0, header.count, RECORDS_PER_TURN):
            spans = scan_keys(payload, at, min(RECORDS_PER_TURN, header.count - begin))
            at = spans[-1][1]
            kept += self._retained_spans(index, header, spans)
            yield len(spans)
        if not kept:
            return None
        new_horizon = not header.has_delete_horizon and not all(span[6] for span in kept)
        if len(kept) < header.count:
            self._note_gaps(header, kept)
        elif not new_horizon:
            return batch
        return rebuild(header, payload, kept, self._horizon_ms if new_horizon else None)

    def _note_gaps(self, header: BatchHeader, kept: list[KeySpan]) -> None:
        """Note the offsets of a batch without a retained record."""
        base = header.base_offset
        expected = 0
        for span in kept:
            if span[4] > expected:
                self._note_removed(base + expected, base + span[4] - 1)
            expected = span[4] + 1
        if expected <= header.last_offset_delta:
            self._note_removed(base + expected, header.last_offset)

    def _note_removed(self, first: int, last: int) -> None:
        if self.removed and self.removed[-1] == first - 1:
            self.removed[-1] = last
        else:
            self.removed.extend((first, last))

    def _retained_spans(
        self, index: int, header: BatchHeader, spans: list[KeySpan]
    ) -> Iterator[KeySpan]:
        """The retained records among `spans` of a batch (Cleaner.shouldRetainRecord)."""
        newest = self._offset_map
        place = index << _DELTA_BITS
        keeps_tombstones = not header.has_delete_horizon or self._now_ms < header.base_timestamp
        for span in spans:
            key = span[5]
            if (
                key is not None
                and newest.get(key, 0) <= place | span[4]
                and (span[6] or keeps_tombstones)
            ):
                yield span
