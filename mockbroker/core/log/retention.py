"""Which segments a log no longer keeps, and dropping them (UnifiedLog.deleteOldSegments).

Segments go from the oldest on, each as a whole, and the log start moves up with them. One goes when
it ends below the log start; under cleanup.policy=delete also while the log exceeds
retention.bytes without it, and when its newest record is older than retention.ms. Nothing goes that
reaches above the high watermark. When even the active segment is to go, an empty one takes its
place first: the log is empty then, and goes on from where it was.
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


class Retained(msgspec.Struct, frozen=True, gc=False):
    """What retention did to one log: how much went, and where the log starts since."""

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
) -> Retained | None:
    """Drop what a log no longer keeps by `now_ms`; None if that is nothing.

    Other data below the log start is freed.
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
    return Retained(segments, size - log.size, start, log.start_offset)


def _newest_ms(log: ReplicaLog, index: int, added: AddedAge) -> int:
    """By which the age of the segment at `index` is told."""
    return log.layout.largest_timestamp(index) - added.added_ms(log, index)


def _below_start(log: ReplicaLog, index: int) -> bool:
    following = index + 1
    bases = log.layout.base_offsets
    return following < len(bases) and bases[following] <= log.start_offset


def _drop_oversized(log: ReplicaLog, retention_bytes: int, high_watermark: int) -> int:
    excess = log.size - retention_bytes
    if retention_bytes < 0 or excess < 0:
        return 0

    def goes(index: int) -> bool:
        nonlocal excess
        excess -= log.layout.size(index, log.end_position)
        return excess >= 0

    return _drop_while(log, high_watermark, goes)


def _drop_while(log: ReplicaLog, high_watermark: int, goes: Callable[[int], bool]) -> int:
    """Drop segments from the oldest on for as long as `goes(index)` and the HW is above them.

    Returns how many went.
    """
    layout = log.layout
    count = 0
    for index in range(len(layout)):
        active = index == len(layout) - 1
        if active and not layout.size(index, log.end_position):
            break
        end = log.end_offset if active else layout.base_offsets[index + 1]
        if end > high_watermark or not goes(index):
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
    """When the oldest segment outlives retention.ms if nothing is appended to it, or None.

    The log may have been looked after until now: what has to go already may count as never.
    """
    if not configs.deleting or configs.retention_ms < 0 or not log.size:
        return None
    return _newest_ms(log, 0, added) + configs.retention_ms + 1
