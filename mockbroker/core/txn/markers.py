"""Transaction markers: their append on the leader of a partition.

A *marker* is a control record that commits or aborts the transaction of a producer id. It comes
from the coordinator (`marker_channel_manager`), or from an administrator who ends a hanging
transaction. The response follows when it is replicated, with one error for each partition. On
`__consumer_offsets` a marker also commits or drops the pending offsets of the transaction.

Source: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import msgspec

from mockbroker.core.brokers.host import HostBroker
from mockbroker.core.events import MarkerWritten
from mockbroker.core.ids import uuid_text
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.purgatory.delayed_replication import DelayedReplication
from mockbroker.core.replication.partition import ACKS_ALL
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import ControlType, build_marker

if TYPE_CHECKING:
    from mockbroker.core.groups.coordinator import GroupCoordinator
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.txn.events import TopicPartition

NONE = ErrorCode.NONE

Errors: TypeAlias = "dict[TopicPartition, int]"  # error codes


class Marker(msgspec.Struct, frozen=True):
    """The end of one producer's transaction. `version` is the transaction's, 0 if unknown."""

    producer_id: int
    epoch: int
    committed: bool
    coordinator_epoch: int
    version: int


class MarkerReceiver(HostBroker, Protocol):
    """A broker that receives markers."""

    @property
    def groups(self) -> GroupCoordinator: ...


def write_markers(
    broker: MarkerReceiver,
    marker: Marker,
    partitions: Sequence[TopicPartition],
    done: Callable[[Errors], None],
) -> None:
    """Append a marker to partitions on their leader `broker`; `done` gets the error codes."""
    runtime, configs = broker.services.runtime, broker.services.configs
    write = _MarkerWrite(runtime, broker, marker, done)
    for key in partitions:
        write.append(key)
    deadline_ms = runtime.now_ms() + configs.get_int("request.timeout.ms")
    write.start(runtime.timers, deadline_ms)


class MarkerPartitionStatus(NamedTuple):
    """A partition whose high watermark must reach `required_offset`."""

    partition: Partition
    required_offset: int


class _MarkerWrite(DelayedReplication[MarkerPartitionStatus]):
    """Markers that wait to be replicated (DelayedProduce, as for acks=all)."""

    __slots__ = ("_broker", "_done", "_errors", "_marker", "_runtime")

    def __init__(
        self,
        runtime: Runtime,
        broker: MarkerReceiver,
        marker: Marker,
        done: Callable[[Errors], None],
    ) -> None:
        super().__init__([])
        self._runtime = runtime
        self._broker = broker
        self._marker = marker
        self._done = done
        self._errors: Errors = {}

    def append(self, key: TopicPartition) -> None:
        partition = self._broker.image.partition(*key)
        if partition is None or partition.replica(self._broker.node_id) is None:
            self._errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return
        error, last_offset = self._append(partition)
        self._errors[key] = error
        if error == NONE and partition.high_watermark <= last_offset:
            self._waiting.append(MarkerPartitionStatus(partition, last_offset + 1))

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
        now_ms = self._runtime.now_ms()
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
        _emit_written(self._runtime, partition, marker, result.last_offset)
        if groups is not None:
            groups.offsets.end_transaction(marker.producer_id, committed=marker.committed)
        return NONE, result.last_offset

    def error_of(self, wait: MarkerPartitionStatus) -> int | None:
        partition = wait.partition
        if partition.deleted or partition.leader_id != self._broker.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if partition.high_watermark < wait.required_offset:
            return None
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if partition.under_min_isr else NONE

    def set_error(self, wait: MarkerPartitionStatus, error: int) -> None:
        self._errors[wait.partition.topic.name, wait.partition.index] = error

    def on_complete(self) -> None:
        self._done(self._errors)


def _emit_written(runtime: Runtime, partition: Partition, marker: Marker, offset: int) -> None:
    """A marker was appended at `offset`."""
    if runtime.on_event:
        topic = partition.topic
        runtime.emit(
            MarkerWritten(
                runtime.now_ms(),
                topic.name,
                uuid_text(topic.topic_id),
                partition.index,
                partition.leader_epoch,
                offset,
                marker.producer_id,
                marker.epoch,
                marker.committed,
            )
        )
