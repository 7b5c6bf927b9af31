"""Flushes and the loss of power.

A killed process loses no write, because writes are in the page cache. A loss of power loses the
writes that were not flushed. Kafka flushes a segment when it rolls the next one, the log every
`flush.messages` records, and all logs at a clean shutdown and at a start.

Nothing is flushed here. A broker has the recovery points of its last clean shutdown or start. After
a loss of power, later flushes are computed from the batches. `flush.ms` has no effect, as by
default in Kafka (`log.flush.scheduler.interval.ms`).

Source: UnifiedLog.roll, UnifiedLog.append, LogManager.shutdown, LogLoader.recoverLog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mockbroker.core.events import LogTruncated
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.core.replication.replica import Replica
from mockbroker_protocol.records import BatchHeader

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.runtime import Runtime


def recovery_point(log: ReplicaLog, flushed_offset: int, every_messages: int) -> int:
    """The offset below which a log survives the loss of power."""
    point = max(flushed_offset, log.segments[-1].base_offset)
    for batch in log.batches():
        end_offset = BatchHeader(batch).next_offset
        if end_offset - point >= every_messages:
            point = end_offset
    return min(point, log.end_offset)


def flush(topics: Iterable[Topic], broker: Broker) -> None:
    """Flush all logs of a broker: set their recovery points to the log end."""
    for partition in _held_by(topics, broker.node_id):
        replica = partition.replica(broker.node_id)
        assert replica is not None  # the broker is one of the partition's replicas
        broker.log_dirs.recovery_points[partition.key] = replica.log.end_offset


def lose_power(runtime: Runtime, topics: Iterable[Topic], broker: Broker) -> None:
    """Truncate the logs of a stopped and fenced broker to its flushed records.

    The logs of other brokers do not change.
    """
    node_id = broker.node_id
    for partition in _held_by(topics, node_id):
        replica = partition.own_replicas.get(node_id)
        log = partition.log if replica is None else replica.log
        flushed = broker.log_dirs.recovery_points.get(partition.key, 0)
        former = log.end_offset
        point = recovery_point(log, flushed, partition.topic.configs.flush_messages)
        if point >= former:
            continue
        if replica is None:
            # Without a leader, replicas without a log of their own share that of the last leader.
            assert partition.leader_id == NO_LEADER
            replica = Replica(node_id, log.fork(), partition.high_watermark)
            partition.own_replicas[node_id] = replica
        replica.truncate(point)
        if partition.log is log:  # the log of the last leader
            partition.set_leader_log(log, min(partition.high_watermark, point))
        name, now_ms = partition.topic.name, runtime.now_ms()
        runtime.emit(
            LogTruncated(now_ms, name, partition.index, node_id, former, point, runtime.cause)
        )


def _held_by(topics: Iterable[Topic], node_id: int) -> Iterator[Partition]:
    for topic in list(topics):
        for partition in topic.partitions:
            if node_id in partition.replicas:
                yield partition
