"""What of a log is on disk for sure, and what goes with the power.

A broker leaves its writes to the operating system. A process that is killed loses none of them:
they are in the page cache. A machine that loses its power loses what was not flushed: Kafka flushes
a segment when it rolls the next one, every `flush.messages` records if told so, everything on an
orderly shutdown, and what it finds when it starts.

Nothing is flushed here; when the power goes, the flush point is worked out from the batches.
`flush.ms` is not looked at: by default Kafka never does (`log.flush.scheduler.interval.ms`).

Source: UnifiedLog.roll, UnifiedLog.append, LogManager.shutdown, LogLoader.recoverLog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mockbroker.core.events import LogTruncated
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker_protocol.records import BatchHeader

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition


def flush_point(log: ReplicaLog, every_messages: int) -> int:
    """The offset below which a log survives the loss of power."""
    point = max(log.flushed_offset, log.segments[-1].base_offset)
    for batch in log.batches():
        end_offset = BatchHeader(batch).next_offset
        if end_offset - point >= every_messages:
            point = end_offset
    return min(point, log.end_offset)


def flush(cluster: Cluster, broker: Broker) -> None:
    """Everything that a broker has is on disk now."""
    for partition in _held_by(cluster, broker.node_id):
        log = _log_of(partition, broker.node_id)
        if log is not None:
            log.flushed_offset = log.end_offset


def lose_power(cluster: Cluster, broker: Broker, led: set[Partition]) -> None:
    """Cut what a broker, stopped and fenced by now, had not flushed; `led` is what it led before.

    Who leads in its place keeps all that it has itself.
    """
    for partition in _held_by(cluster, broker.node_id):
        log = _log_of(partition, broker.node_id, also=partition in led)
        if log is None:
            continue
        former, point = log.end_offset, flush_point(log, partition.topic.configs.flush_messages)
        if point >= former:
            continue
        own = partition.own_replicas.get(broker.node_id)
        if own is None:
            partition.truncate(point)
        else:
            log.truncate(point)
            own.high_watermark = min(own.high_watermark, point)
        name, now_ms = partition.topic.name, cluster.now_ms()
        cluster.tell(LogTruncated(now_ms, name, partition.index, broker.node_id, former, point))


def _held_by(cluster: Cluster, node_id: int) -> Iterator[Partition]:
    for topic in list(cluster.topics.values()):
        for partition in topic.partitions:
            if node_id in partition.replicas:
                yield partition


def _log_of(partition: Partition, node_id: int, *, also: bool = False) -> ReplicaLog | None:
    """The log that a broker has to itself, or that of the leader it is; with `also` the one of a
    partition without a leader as well.
    """
    own = partition.own_replicas.get(node_id)
    if own is not None:
        return own.log
    if partition.leader_id == node_id or (also and partition.leader_id < 0):
        return partition.log
    return None
