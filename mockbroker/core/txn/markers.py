"""Markers: how a transaction's end reaches the partitions it wrote to.

A *marker* is a control record that says COMMIT or ABORT of a producer id. It comes from the
coordinator (`marker_sender`) or, to end a transaction that nobody remembers, from an
administrator. The leader of each partition appends it and answers when it is replicated, one error
for each partition. On `__consumer_offsets` a marker also puts the offsets in force that were
committed inside the transaction, or drops them.

Source: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mockbroker.core.log.told import tell_marker
from mockbroker.core.partition import ACKS_ALL
from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import ControlType, build_marker

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.partition import Partition
    from mockbroker.core.timers import Timer
    from mockbroker.core.txn.events import TopicPartition

NONE = ErrorCode.NONE

Errors: TypeAlias = "dict[TopicPartition, int]"  # error codes


class Marker(msgspec.Struct, frozen=True):
    """The end of one producer's transaction. `version` is the transaction's, 0 if not told."""

    producer_id: int
    epoch: int
    committed: bool
    coordinator_epoch: int
    version: int = 0


def write_markers(
    cluster: Cluster,
    broker: Broker,
    marker: Marker,
    partitions: tuple[TopicPartition, ...],
    done: Callable[[Errors], None],
) -> None:
    """Append a marker to partitions that `broker` should lead; `done` learns each one's error."""
    write = _MarkerWrite(cluster, broker, marker, done)
    for key in partitions:
        write.append(key)
    write.start()


class _MarkerWrite:
    """Markers that wait to be replicated (DelayedProduce, as for acks=all)."""

    __slots__ = ("_broker", "_cluster", "_done", "_errors", "_marker", "_timer", "_waiting")

    def __init__(
        self, cluster: Cluster, broker: Broker, marker: Marker, done: Callable[[Errors], None]
    ) -> None:
        self._cluster = cluster
        self._broker = broker
        self._marker = marker
        self._done = done
        self._errors: Errors = {}
        self._waiting: dict[Partition, int] = {}
        self._timer: Timer | None = None

    def append(self, key: TopicPartition) -> None:
        partition = self._broker.image.partition(*key)
        if partition is None or partition.replica(self._broker.node_id) is None:
            self._errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return
        error, last_offset = self._append(partition)
        self._errors[key] = error
        if error == NONE and partition.high_watermark <= last_offset:
            self._waiting[partition] = last_offset + 1

    def _append(self, partition: Partition) -> tuple[int, int]:
        if partition.leader_id != self._broker.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        marker = self._marker
        if marker.producer_id < 0 or marker.epoch < 0:
            return ErrorCode.UNKNOWN_SERVER_ERROR, -1  # Kafka cannot build such a marker
        groups: GroupShard | None = None
        if partition.topic.name == GROUP_METADATA_TOPIC:
            shard = self._broker.groups.shard(partition)
            if isinstance(shard, ErrorCode):
                return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
            groups = shard
        error = partition.log.producers.check_marker(
            marker.producer_id, marker.epoch, marker.coordinator_epoch, marker.version
        )
        if error:
            return error, -1
        now_ms = self._cluster.now_ms()
        batch = build_marker(
            ControlType.COMMIT if marker.committed else ControlType.ABORT,
            producer_id=marker.producer_id,
            producer_epoch=marker.epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
        acks = ACKS_ALL if groups is None else groups.acks
        result = partition.append_records(batch, now_ms, acks)
        if result.error:
            return result.error, -1
        tell_marker(self._cluster, partition, marker, result.last_offset)
        if groups is not None:
            groups.offsets.end_transaction(marker.producer_id, committed=marker.committed)
        return NONE, result.last_offset

    def start(self) -> None:
        """Wait for the high watermarks, if any has yet to pass a marker."""
        if self._waiting:
            due_ms = self._cluster.now_ms() + self._cluster.config_int("request.timeout.ms")
            self._timer = self._cluster.timers.call_at(due_ms, self._time_out)
            for partition in self._waiting:
                partition.watch(self)
        self._finish_if_settled()

    def partition_changed(self, partition: Partition) -> None:
        """A partition's watcher."""
        if partition.deleted or partition.leader_id != self._broker.node_id:
            self._settle(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.high_watermark >= self._waiting[partition]:
            short = partition.under_min_isr
            self._settle(partition, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if short else NONE)

    def _settle(self, partition: Partition, error: int) -> None:
        partition.unwatch(self)
        del self._waiting[partition]
        self._errors[partition.topic.name, partition.index] = error
        self._finish_if_settled()

    def _time_out(self) -> None:
        for partition in list(self._waiting):
            self._settle(partition, ErrorCode.REQUEST_TIMED_OUT)

    def _finish_if_settled(self) -> None:
        if not self._waiting:
            if self._timer is not None:
                self._timer.cancel()
            self._done(self._errors)
