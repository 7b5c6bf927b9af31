"""Emit the events of a leader's log: removed records, expired producers, and moves of the high
watermark.

A record that leaves the leader's log is lost, although a follower may still have it. The event of a
follower's truncation is `LogTruncated`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.events import ProducersExpired, RecordsRemoved, WatermarkMoved
from mockbroker.core.ids import uuid_text

if TYPE_CHECKING:
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.runtime import Runtime

RANGES_PER_EVENT_MAX = 4_096
PRODUCERS_PER_EVENT_MAX = 4_096


def emit_removed(
    runtime: Runtime, partition: Partition, first_offset: int, last_offset: int, reason: str
) -> None:
    """Offsets were removed from the leader's log; `reason` is one of `RecordsRemoved`."""
    if runtime.on_event and first_offset <= last_offset:
        topic = partition.topic
        runtime.emit(
            RecordsRemoved(
                runtime.now_ms(),
                topic.name,
                uuid_text(topic.topic_id),
                partition.index,
                first_offset,
                last_offset,
                reason,
                runtime.cause,
            )
        )


def emit_compacted(runtime: Runtime, partition: Partition, ranges: array[int]) -> None:
    """Offsets that compaction removed from the leader's log: pairs of first and last, in order."""
    if not runtime.on_event:
        return
    topic = partition.topic
    for begin in range(0, len(ranges), 2 * RANGES_PER_EVENT_MAX):
        some = ranges[begin : begin + 2 * RANGES_PER_EVENT_MAX]
        runtime.emit(
            RecordsRemoved(
                runtime.now_ms(),
                topic.name,
                uuid_text(topic.topic_id),
                partition.index,
                some[0],
                some[-1],
                "compaction",
                runtime.cause,
                some.tobytes(),
            )
        )


def emit_divergence(
    runtime: Runtime, partition: Partition, former: ReplicaLog, reason: str
) -> None:
    """Records of the former leader's log that the new leader's log does not have are lost."""
    if runtime.on_event:
        first = _divergence_offset(former, partition.log)
        emit_removed(runtime, partition, first, former.end_offset - 1, reason)


def _divergence_offset(former: ReplicaLog, present: ReplicaLog) -> int:
    """The offset at which two logs diverge by their leader epochs, as a follower finds it."""
    epoch, end = present.epochs.end_offset_for(former.epochs.latest, present.end_offset)
    if epoch < 0:  # the present log ends in an earlier epoch
        epoch, end = present.epochs.latest, present.end_offset
    _, former_end = former.epochs.end_offset_for(epoch, former.end_offset)
    return min(end, former_end) if former_end >= 0 else end


def emit_topic_deleted(runtime: Runtime, topic: Topic) -> None:
    """All records of a deleted topic are removed."""
    if not runtime.on_event:
        return
    for partition in topic.partitions:
        log = partition.log
        if log.end_offset:
            # Also for an empty log, because readers need the deletion of the partition.
            first = min(log.start_offset, log.end_offset - 1)
            emit_removed(runtime, partition, first, log.end_offset - 1, "topic_deleted")


def emit_expired(runtime: Runtime, partition: Partition, producer_ids: Sequence[int]) -> None:
    """The leader's log has no state of these producers any more."""
    if not runtime.on_event:
        return
    topic = partition.topic
    for begin in range(0, len(producer_ids), PRODUCERS_PER_EVENT_MAX):
        runtime.emit(
            ProducersExpired(
                runtime.now_ms(),
                topic.name,
                uuid_text(topic.topic_id),
                partition.index,
                partition.leader_id,
                tuple(producer_ids[begin : begin + PRODUCERS_PER_EVENT_MAX]),
            )
        )


def emit_watermark(
    runtime: Runtime,
    partition: Partition,
    node_id: int,
    former: int,
    high_watermark: int,
    log_end_offset: int,
    cause: str = "",
) -> None:
    """The high watermark on broker `node_id` moved; `cause` is the action that did it, if any."""
    if runtime.on_event and high_watermark != former:
        runtime.emit(
            WatermarkMoved(
                runtime.now_ms(),
                partition.topic.name,
                partition.index,
                node_id,
                former,
                high_watermark,
                log_end_offset,
                cause,
            )
        )
