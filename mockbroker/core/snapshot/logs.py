"""Logs to and from structs: the changes of a log since it was last written.

A *log change* names the batches of the file that stay, and describes the rest of the log; the bytes
of the other batches follow it. State that batches imply is not written: producers are replayed as
on a follower. If more than the end of a log changed, all other state is written.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from mockbroker.core.log.batch_store import BatchStore
from mockbroker.core.log.file_state import ALL, FileState
from mockbroker.core.log.leader_epoch_cache import LeaderEpochCache
from mockbroker.core.log.producer_state import (
    AbortedTransaction,
    BatchMetadata,
    ProducerStateEntry,
    ProducerStateManager,
)
from mockbroker.core.log.replica_log import ReplicaLog, TimestampOffset
from mockbroker.core.log.segments import Segments
from mockbroker.core.snapshot.image import LogImage

_SIZE_OVERHEAD = 12
_BATCH_BYTES_MIN = 61
_HEAD = struct.Struct(">qi")  # base offset, length
_TIME_AND_PRODUCER = struct.Struct(">qq")
_MAX_TIMESTAMP_AT = 35
NO_PRODUCER = -1


class ProducerImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One producer's entry."""

    producer_id: int
    epoch: int
    batches: list[BatchMetadata]
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


class ProducersImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The producers of one log."""

    entries: list[ProducerImage]
    ongoing: dict[int, int]
    unreplicated: dict[int, int]
    aborted: list[AbortedTransaction]


class SegmentsImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The segments from index `first` on; positions count back from the log's end."""

    first: int
    base_offsets: list[int]
    positions: list[int]
    first_timestamps: list[int]
    max_timestamps: list[int]
    modified_ms: list[int]
    started_ms: int
    index_entries: int
    time_index_entries: int
    indexed_position: int
    indexed_timestamp: int


class LogDelta(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The change of a log. Batches with base offsets in [keep_from, keep_to) stay.

    Before them come `front_bytes` of batches, after them `tail_bytes`. With `fork_of` 0 the log
    continues its own last state, or is new. A field with None is unchanged, or follows from the
    batches.
    """

    log_id: int
    fork_of: int
    keep_from: int
    keep_to: int
    front_bytes: int
    tail_bytes: int
    start_offset: int
    end_offset: int
    high_watermark: int
    first_dirty_offset: int
    has_holes: bool
    segments: SegmentsImage
    epochs: list[tuple[int, int]] | None = None
    producers: ProducersImage | None = None
    freed_maxima: dict[int, TimestampOffset] | None = None


_NO_PRODUCERS = ProducersImage([], {}, {}, [])


class BadLogError(Exception):
    """A file describes an impossible log."""


# -- out -------------------------------------------------------------------------------------------


def copy_of(log: ReplicaLog) -> ReplicaLog:
    """A copy of a log that shares its bytes and is equal to the last epoch."""
    twin = log.fork()
    twin.epochs = log.epochs.fork(log.end_offset + 1)
    twin.file_state = None
    return twin


def fingerprint_of(log: ReplicaLog, high_watermark: int) -> tuple[int, ...]:
    """A fingerprint of a log's written state: an equal one means no change."""
    epochs = log.epochs
    return (
        log.end_offset,
        high_watermark,
        log.start_offset,
        log.cuts,
        log.first_dirty_offset,
        len(log.layout),
        *_epochs_fingerprint(epochs),
    )


_CUTS_AT = 3


def _epochs_fingerprint(epochs: LeaderEpochCache) -> tuple[int, int, int]:
    return epochs.latest, len(epochs._starts), epochs._starts[0] if epochs._starts else -1


def is_pristine(log: ReplicaLog, leader_epoch: int) -> bool:
    """Whether a leader's log equals that of a new partition, but for the epoch."""
    return log.end_offset == 0 and log.epochs.latest == leader_epoch


def change_of(
    log: ReplicaLog, high_watermark: int, stored: FileState, fork_of: int = 0
) -> tuple[LogDelta, list[memoryview]]:
    """The change and the bytes that a file with `stored` lacks of a log.

    Updates `stored` to include them.
    """
    mark = fingerprint_of(log, high_watermark)
    known = stored.mark
    whole = known is None or log.cuts != stored.cuts
    offsets = log._base_offsets
    if whole:
        first = bisect_left(offsets, stored.begin)
        last = max(bisect_left(offsets, stored.end), first)
        keep_from, keep_to = (offsets[first], offsets[last - 1] + 1) if first < last else (0, 0)
    else:
        first, last = 0, bisect_left(offsets, stored.end)
        keep_from, keep_to = 0, ALL
    count = len(offsets)
    front = _bytes_of(log, 0, first) if first < last else []
    tail = _bytes_of(log, last if first < last or not whole else 0, count)
    epochs_changed = not isinstance(known, tuple) or known[6:] != mark[6:]
    change = LogDelta(
        log_id=stored.log_id,
        fork_of=fork_of,
        keep_from=keep_from,
        keep_to=keep_to,
        front_bytes=sum(map(len, front)),
        tail_bytes=sum(map(len, tail)),
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        high_watermark=high_watermark,
        first_dirty_offset=log.first_dirty_offset,
        has_holes=log._has_holes,
        segments=_segments_image(log, 0 if whole else stored.segments - 1),
        epochs=log.epochs.entries if whole or epochs_changed else None,
        producers=_producers_image(log.producers) if whole else None,
        freed_maxima=log._freed_maxima if whole else None,
    )
    if whole and known is not None:
        stored.rewrites += 1
    stored.begin, stored.end, stored.cuts = 0, log.end_offset, log.cuts
    stored.segments, stored.mark = len(log.layout), mark
    return change, [*front, *tail]


def changes_of_whole(
    log_id: int, image: LogImage, bytes_max: int
) -> Iterator[tuple[LogDelta, list[memoryview]]]:
    """A whole log in pieces of about `bytes_max`; the last piece has the state of the log."""
    log = image.log
    change, _ = change_of(log, image.high_watermark, FileState(log_id))
    first, count, keep_to = 0, log.batch_count, 0
    while True:
        limit = log._position_after(first - 1) + bytes_max
        last = max(bisect_left(log._positions, limit, first), first + 1)
        pieces = _bytes_of(log, first, min(last, count))
        part = msgspec.structs.replace(change, keep_to=keep_to, tail_bytes=sum(map(len, pieces)))
        if last >= count:
            yield part, pieces
            return
        yield msgspec.structs.replace(part, producers=_NO_PRODUCERS), pieces
        first, keep_to = last, ALL


def set_stored(log: ReplicaLog, high_watermark: int, stored: FileState) -> None:
    """Update `stored`: the file has the whole present log."""
    stored.begin, stored.end, stored.cuts = 0, log.end_offset, log.cuts
    stored.segments, stored.mark = len(log.layout), fingerprint_of(log, high_watermark)
    stored.origin = None


def set_stored_from(image: LogImage, stored: FileState) -> None:
    """Update `stored`: the file has the image that the log was restored from."""
    log = image.log
    stored.end, stored.segments = log.end_offset, len(log.layout)
    # A restored log has not been truncated since.
    mark = fingerprint_of(log, image.high_watermark)
    stored.mark = (*mark[:_CUTS_AT], 0, *mark[_CUTS_AT + 1 :])


def _bytes_of(log: ReplicaLog, first: int, last: int) -> list[memoryview]:
    if first >= last:
        return []
    return log._pieces(log._positions[first], log._position_after(last - 1))


def _segments_image(log: ReplicaLog, first: int) -> SegmentsImage:
    segments, end = log.layout, log.end_position
    return SegmentsImage(
        first=first,
        base_offsets=segments.base_offsets[first:],
        positions=[end - position for position in segments.positions[first:]],
        first_timestamps=segments.first_timestamps[first:],
        max_timestamps=segments.max_timestamps[first:],
        modified_ms=segments.modified_ms[first:],
        started_ms=segments._started_ms,
        index_entries=segments._index_entries,
        time_index_entries=segments._time_index_entries,
        indexed_position=end - segments._indexed_position,
        indexed_timestamp=segments._indexed_timestamp,
    )


def _producers_image(producers: ProducerStateManager) -> ProducersImage:
    return ProducersImage(
        entries=[
            ProducerImage(
                producer_id,
                entry.epoch,
                list(entry.batches),
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_start,
            )
            for producer_id, entry in producers._entries.items()
        ],
        ongoing=dict(producers._ongoing),
        unreplicated=dict(producers._unreplicated),
        aborted=list(producers.aborted),
    )


# -- in --------------------------------------------------------------------------------------------


def apply(log: ReplicaLog | None, change: LogDelta, body: memoryview) -> ReplicaLog:
    """Apply a change to `log` (None for a new log); returns the log. Raises BadLogError."""
    if len(body) != change.front_bytes + change.tail_bytes:
        raise BadLogError("a log has another number of bytes than its change says")
    if log is None:
        log = ReplicaLog()
    if (change.keep_from, change.keep_to) != (0, ALL) or change.front_bytes:
        log = _rebuilt(log, change, body[: change.front_bytes])
    _put_batches(log, body[change.front_bytes :], replay=change.producers is None)
    log.start_offset, log.end_offset = change.start_offset, change.end_offset
    log.first_dirty_offset = change.first_dirty_offset
    log._has_holes = change.has_holes
    _set_segments(log, change.segments)
    if change.epochs is not None:
        log.epochs = LeaderEpochCache()
        for epoch, start_offset in change.epochs:
            log.epochs.assign(epoch, start_offset)
    if change.producers is not None:
        log.producers = _producers(change.producers)
    log.producers.log_start_moved(log.start_offset)
    log.producers.high_watermark_moved(change.high_watermark)
    if change.freed_maxima is not None:
        log._freed_maxima = dict(change.freed_maxima)
    return log


def _rebuilt(log: ReplicaLog, change: LogDelta, front: memoryview) -> ReplicaLog:
    """A log of the front batches and the batches that stay; the rest is added later."""
    offsets = log._base_offsets
    first, last = bisect_left(offsets, change.keep_from), bisect_left(offsets, change.keep_to)
    kept = BatchStore()
    log.share_into(kept, first, last)
    rebuilt = ReplicaLog()
    _put_batches(rebuilt, front, replay=False)
    rebuilt.extend(kept)
    rebuilt.epochs, rebuilt.producers = log.epochs, log.producers
    return rebuilt


def _put_batches(log: ReplicaLog, data: memoryview, *, replay: bool) -> None:
    position, size = 0, len(data)
    former = log._base_offsets[-1] if log._base_offsets else -1
    while position < size:
        if size - position < _BATCH_BYTES_MIN:
            raise BadLogError("a batch ends early")
        base_offset, length = _HEAD.unpack_from(data, position)
        end = position + length + _SIZE_OVERHEAD
        if not position + _BATCH_BYTES_MIN <= end <= size or base_offset <= former:
            raise BadLogError("a batch does not follow the batch before")
        batch = data[position:end]
        timestamp, producer_id = _TIME_AND_PRODUCER.unpack_from(batch, _MAX_TIMESTAMP_AT)
        log.put(batch, base_offset, timestamp)
        if replay and producer_id != NO_PRODUCER:
            log.producers.replay(batch)
        former, position = base_offset, end


def _set_segments(log: ReplicaLog, image: SegmentsImage) -> None:
    segments: Segments = log.layout
    end, first = log.end_position, image.first
    columns = (image.positions, image.first_timestamps, image.max_timestamps, image.modified_ms)
    count = len(image.base_offsets)
    if not 0 <= first <= len(segments) or not count or {*map(len, columns)} != {count}:
        raise BadLogError("segments are missing")
    segments.base_offsets[first:] = image.base_offsets
    segments.positions[first:] = [end - back for back in image.positions]
    segments.first_timestamps[first:] = image.first_timestamps
    segments.max_timestamps[first:] = image.max_timestamps
    segments.modified_ms[first:] = image.modified_ms
    segments._started_ms = image.started_ms
    segments._index_entries = image.index_entries
    segments._time_index_entries = image.time_index_entries
    segments._indexed_position = end - image.indexed_position
    segments._indexed_timestamp = image.indexed_timestamp
    segments.open_limits = None


def _producers(image: ProducersImage) -> ProducerStateManager:
    producers = ProducerStateManager()
    for each in image.entries:
        entry = producers._entries[each.producer_id] = ProducerStateEntry()
        entry.epoch = each.epoch
        entry.batches = list(each.batches)
        entry.last_sequence = each.last_sequence
        entry.last_timestamp = each.last_timestamp
        entry.coordinator_epoch = each.coordinator_epoch
        entry.transaction_start = each.transaction_start
    producers._ongoing = dict(image.ongoing)
    producers._unreplicated = dict(image.unreplicated)
    producers.aborted = list(image.aborted)
    return producers
