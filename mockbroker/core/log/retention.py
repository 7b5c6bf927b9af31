"""Retention: the deletion of old segments (UnifiedLog.deleteOldSegments).

Whole segments are deleted from the oldest on, and the log start offset rises. A segment is deleted
if it ends below the log start offset. With cleanup.policy=delete it is also deleted if the log
exceeds retention.bytes without it, or if its largest timestamp is older than retention.ms. Segments
with records above the high watermark stay. Before the active segment is deleted, an empty one is
rolled; the log end offset does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.log.added_age import AddedAge

if TYPE_CHECKING:
    from mockbroker.core.configs.values import TopicConfigs
    from mockbroker.core.log.replica_log import ReplicaLog

NO_ADDED_AGE = AddedAge()


class DeletedSegments(msgspec.Struct, frozen=True, gc=False):
    """The segments deleted from one log, and its old and new log start offset."""

    segments_removed: int
    bytes_removed: int
    old_log_start_offset: int
    log_start_offset: int


def enforce(
    log: ReplicaLog,
    configs: TopicConfigs,
    high_watermark: int,
    now_ms: int,
    added: AddedAge = NO_ADDED_AGE,
) -> DeletedSegments | None:
    """Delete the segments that are expired at `now_ms`; None if there are none.

    The memory of other batches below the log start is freed.
    """
    start, size = log.start_offset, log.size
    segments = _drop_while(log, high_watermark, lambda index: _below_start(log, index))
    if configs.deleting:
        segments += _drop_oversized(log, configs.retention_bytes, high_watermark)
        if configs.retention_ms >= 0:
            oldest_ms = now_ms - configs.retention_ms
            segments += _drop_while(
                log, high_watermark, lambda index: _newest_ms(log, index, added) < oldest_ms
            )
    log.free()
    if not segments:
        return None
    return DeletedSegments(segments, size - log.size, start, log.start_offset)


def _newest_ms(log: ReplicaLog, index: int, added: AddedAge) -> int:
    """The timestamp that decides the age of the segment at `index`."""
    return log.layout.largest_timestamp(index) - added.added_ms(log, index)


def _below_start(log: ReplicaLog, index: int) -> bool:
    following = index + 1
    bases = log.layout.base_offsets
    return following < len(bases) and bases[following] <= log.start_offset


def _drop_oversized(log: ReplicaLog, retention_bytes: int, high_watermark: int) -> int:
    excess = log.size - retention_bytes
    if retention_bytes < 0 or excess < 0:
        return 0

    def exceeds(index: int) -> bool:
        nonlocal excess
        excess -= log.layout.size(index, log.end_position)
        return excess >= 0

    return _drop_while(log, high_watermark, exceeds)


def _drop_while(log: ReplicaLog, high_watermark: int, deletable: Callable[[int], bool]) -> int:
    """Delete segments below the high watermark from the oldest on, while `deletable(index)`.

    Returns their number.
    """
    layout = log.layout
    count = 0
    for index in range(len(layout)):
        active = index == len(layout) - 1
        if active and not layout.size(index, log.end_position):
            break
        end = log.end_offset if active else layout.base_offsets[index + 1]
        if end > high_watermark or not deletable(index):
            break
        count += 1
    if count == len(layout):
        log.roll()
    if count:
        log.drop_segments(count)
    return count


def next_expiry_ms(
    log: ReplicaLog, configs: TopicConfigs, added: AddedAge = NO_ADDED_AGE
) -> int | None:
    """The time at which the oldest segment expires by retention.ms, or None if it does not.

    The time may have passed already.
    """
    if not configs.deleting or configs.retention_ms < 0 or not log.size:
        return None
    return _newest_ms(log, 0, added) + configs.retention_ms + 1
