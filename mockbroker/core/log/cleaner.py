"""Compacting one log: of each key only the newest record stays.

Nouns: records from the *first dirty offset* on were not cleaned yet; from the *first uncleanable
offset* on they may not be, because they lie in the active segment, above the last stable offset, or
are younger than min.compaction.lag.ms. A cleaning has two passes. The first goes over the dirty
part and notes the newest record of each key, until there are as many keys as
log.cleaner.dedupe.buffer.size has room for. The second goes over the log from its beginning up to
where the first came, and leaves out what has a newer record, what an aborted transaction wrote, and
what its *delete horizon* has passed for: the time until which tombstones and markers are kept, set
when the cleaner meets them for the first time (KIP-534). What is left takes the place of the old
segments at one go. Offsets never change.

A batch whose records all go is kept, empty, when it is the last of its producer or of the round:
the producer's next sequence follows from it, or where the cleaned part ends.

A cleaning works in steps, and in between clients are served. When the log loses batches meanwhile,
to retention or to truncation, the cleaning ends without effect (Kafka: LogCleaningAborted).

Source: Cleaner, LogCleanerManager.cleanableOffsets, LogToClean.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from mockbroker.core.log.batch_store import BatchStore
from mockbroker.core.log.cleaned_transactions import CleanedTransactions
from mockbroker.core.log.compacted_batch import emptied, rebuild
from mockbroker.core.log.segments import Segments
from mockbroker_protocol.records import BatchHeader, batch_payload
from mockbroker_protocol.records.keys import KeySpan, scan_keys

if TYPE_CHECKING:
    from mockbroker.core.configs.values import TopicConfigs
    from mockbroker.core.log.replica_log import ReplicaLog

RECORDS_PER_TURN = 512
RECORDS_PER_BATCH = 4  # what a batch costs by itself, in terms of records
_DELTA_BITS = 31  # what an offset delta takes, in the place of a record


class Dirt(NamedTuple):
    """How much of a log is to be cleaned; the bytes are those of whole segments."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool  # some of it has waited for more than max.compaction.lag.ms

    @property
    def ratio(self) -> float:
        """The share of what is not clean, as min.cleanable.dirty.ratio means it."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, configs: TopicConfigs) -> bool:
        """Whether the cleaner takes this log on by itself."""
        if self.overdue and self.cleanable_bytes:
            return True
        return self.ratio > configs.min_cleanable_dirty_ratio


class Compacted(msgspec.Struct, frozen=True, gc=False):
    """What a cleaning did to one log. Offsets below `end_offset` are clean since."""

    records_read: int
    records_removed: int
    batches_removed: int
    bytes_removed: int
    end_offset: int


# (log, index of a segment) -> by how many ms the cleaner's time was ahead of the cluster's when the
# segment was last written to.
Ahead: TypeAlias = "Callable[[ReplicaLog, int], int]"


def _never_ahead(_log: ReplicaLog, _index: int) -> int:
    return 0


def find_dirt(
    log: ReplicaLog,
    configs: TopicConfigs,
    last_stable_offset: int,
    now_ms: int,
    ahead: Ahead = _never_ahead,
) -> Dirt:
    """Which part of a log can be cleaned now, which is `now_ms` to the cleaner."""
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
            if layout.largest_timestamp(index) + ahead(log, index) > settled_ms:
                limit = min(limit, layout.base_offsets[index])
                break
    # Segments are cleaned as a whole, or not at all.
    end = min(layout.index_of(max(dirty, limit)), active)
    begin = min(first, end)
    clean = bisect_left(layout.base_offsets, dirty)
    sizes = [layout.size(index, log.end_position) for index in range(active)]
    late_ms = now_ms - max(configs.max_compaction_lag_ms, 0)
    # A segment without a timestamp is never late.
    late = any(
        0 < layout.first_timestamps[index] < late_ms - ahead(log, index)
        for index in range(first, active)
    )
    return Dirt(
        dirty,
        layout.base_offsets[end],
        sum(sizes[:clean]),
        sum(sizes[begin:end]),
        late,
    )


def next_due_ms(
    log: ReplicaLog, configs: TopicConfigs, now_ms: int, ahead: Ahead = _never_ahead
) -> int | None:
    """When more of a log may be cleaned, or has to be, without anything being appended; or None."""
    layout = log.layout
    times = []
    for index in range(layout.index_of(log.first_dirty_offset), len(layout) - 1):
        ahead_ms = ahead(log, index)
        times.append(layout.largest_timestamp(index) + ahead_ms + configs.min_compaction_lag_ms)
        times.append(layout.first_timestamps[index] + ahead_ms + configs.max_compaction_lag_ms + 1)
    return min((at_ms for at_ms in times if at_ms > now_ms), default=None)


class Cleaning:
    """One cleaning of one log; `result` is there when it came to its end, and not when it broke
    off.

    `keys_max` limits the keys of the first pass, `dirt` says how far it may go.
    """

    def __init__(
        self, log: ReplicaLog, dirt: Dirt, configs: TopicConfigs, now_ms: int, keys_max: int
    ) -> None:
        self.result: Compacted | None = None
        # What goes: first and last offsets of stretches, in turn. Markers do not count.
        self.removed = array("q")
        self._log = log
        self._cuts = log.cuts
        self._dirt = dirt
        self._now_ms = now_ms
        self._delete_retention_ms = configs.delete_retention_ms
        self._segment_bytes = configs.roll_limits.segment_bytes
        self._keys_max = keys_max
        # Key -> the place of its newest record: batch index and offset delta in one number.
        self._newest: dict[bytes, int] = {}
        self._first_indexed = self._end_indexed = 0
        self._losses = array("i")  # per indexed batch: records with a newer one, or without a key
        self._with_tombstones: set[int] = set()
        self._end_offset = dirt.first_dirty_offset
        self._transactions = CleanedTransactions(())
        self._last_of_producer: dict[int, tuple[int, int]] = {}
        self._output = BatchStore()
        self._records_read = self._records_kept = 0
        self._work = self._clean()

    def step(self, records_max: int) -> bool:
        """Work on about so many records; True when there is nothing left to do.

        Raises RecordsError when the log holds a batch that cannot be read.
        """
        if self._log.cuts != self._cuts:
            return True
        for records in self._work:
            records_max -= records
            if records_max <= 0:
                return False
        return True

    def _clean(self) -> Iterator[int]:
        """Both passes, and the exchange. Yields how many records were looked at, ever and again."""
        log, dirt = self._log, self._dirt
        yield from self._index()
        count = bisect_left(log.layout.base_offsets, self._end_offset)
        count = min(count, bisect_left(log.layout.base_offsets, dirt.first_uncleanable_offset))
        if count:
            yield from self._rewrite(count)
        elif self._end_offset > dirt.first_dirty_offset:
            log.first_dirty_offset = self._end_offset

    # -- the first pass ----------------------------------------------------------------------------

    def _index(self) -> Iterator[int]:
        """Note where the newest record of each key in the dirty part is."""
        log, start = self._log, self._dirt.first_dirty_offset
        first, end = log.batch_range(start, self._dirt.first_uncleanable_offset)
        # Those that ended before are over: their producers may have written in others since.
        aborted = [entry for entry in log.producers.aborted if entry.last_offset >= start]
        transactions = CleanedTransactions(aborted)
        self._first_indexed = self._end_indexed = first
        self._losses = array("i", bytes(4 * (end - first)))
        for index in range(first, end):
            yield RECORDS_PER_BATCH
            batch = log.batch_at(index)
            header = BatchHeader(batch)
            if header.is_control:
                transactions.marker(header, batch)
            elif not transactions.data(header):
                payload = batch_payload(header, batch)
                at = 0
                for begin in range(0, header.count, RECORDS_PER_TURN):
                    spans = scan_keys(payload, at, min(RECORDS_PER_TURN, header.count - begin))
                    at = spans[-1][1]
                    if not self._index_spans(index, spans, start - header.base_offset):
                        return
                    yield len(spans)
            self._end_indexed = index + 1
            self._end_offset = max(self._end_offset, header.next_offset)
        self._end_offset = self._dirt.first_uncleanable_offset

    def _index_spans(self, index: int, spans: list[KeySpan], first_delta: int) -> bool:
        """Take in records of one batch; False if there are too many keys."""
        newest, losses, first = self._newest, self._losses, self._first_indexed
        place = index << _DELTA_BITS
        for _, _, _, _, delta, key, has_value in spans:
            if key is None:
                losses[index - first] += 1
                continue
            if not has_value:
                self._with_tombstones.add(index)
            if delta < first_delta:
                continue
            older = newest.get(key)
            if older is not None:
                losses[(older >> _DELTA_BITS) - first] += 1
            elif len(newest) >= self._keys_max:
                return False
            newest[key] = place | delta
        return True

    # -- the second pass ---------------------------------------------------------------------------

    def _rewrite(self, segment_count: int) -> Iterator[int]:
        """Write the first segments anew and exchange them."""
        log = self._log
        old_layout = log.layout
        old_bytes = old_layout.positions[segment_count] - old_layout.positions[0]
        self._transactions = CleanedTransactions(log.producers.aborted)
        self._last_of_producer = {
            producer_id: (entry.batches[-1].last_offset if entry.batches else -1, entry.epoch)
            for producer_id, entry in log.producers.entries.items()
        }
        groups = self._grouped(segment_count)
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
        self.result = Compacted(
            self._records_read,
            self._records_read - self._records_kept,
            batches - self._output.batch_count,
            old_bytes - self._output.end_position,
            self._end_offset,
        )

    def _grouped(self, segment_count: int) -> list[list[int]]:
        """Neighbouring segments that become one, lest they shrink to nothing by and by."""
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
        """Put into the output what is left of one batch."""
        yield RECORDS_PER_BATCH
        batch = self._log.batch_at(index)
        header = BatchHeader(batch)
        self._records_read += header.count
        removes_empty = not self._must_stay(header)
        copy: memoryview | bytearray | None
        if header.is_control:
            copy = self._marker(header, batch)
        elif self._transactions.data(header):
            copy = None
        else:
            copy = yield from self._survivors(index, header, batch)
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

    def _must_stay(self, header: BatchHeader) -> bool:
        """Whether a batch stays even without records."""
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
        if not self._transactions.marker(header, batch):
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

    def _survivors(
        self, index: int, header: BatchHeader, batch: memoryview
    ) -> Generator[int, None, memoryview | bytearray | None]:
        """What is left of a data batch: itself, a copy with fewer records, or None."""
        if index >= self._end_indexed:
            return batch
        first_dirty = self._dirt.first_dirty_offset
        if index >= self._first_indexed and header.base_offset >= first_dirty:
            losses = self._losses[index - self._first_indexed]
            if losses == header.count:
                return None
            if not losses and index not in self._with_tombstones:
                return batch
        payload = batch_payload(header, batch)
        kept: list[KeySpan] = []
        at = 0
        for begin in range(0, header.count, RECORDS_PER_TURN):
            spans = scan_keys(payload, at, min(RECORDS_PER_TURN, header.count - begin))
            at = spans[-1][1]
            kept += self._newest_of(index, header, spans)
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
        """Note what goes between and around the records of a batch that are kept."""
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

    def _newest_of(
        self, index: int, header: BatchHeader, spans: list[KeySpan]
    ) -> Iterator[KeySpan]:
        """Those of some records of a batch that have no newer one, without outlived tombstones."""
        newest = self._newest
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
