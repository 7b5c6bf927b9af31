"""Topics, partitions, replicas, producers and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import uuid_text
from mockbroker.core.validation import nearest
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import CompressionType, RecordsError, iter_records, split_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mockbroker.core.cluster import Cluster
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition
    from mockbroker_protocol.records import BatchHeader, Record

READ_BYTES_MAX = 1 << 20


class ReplicaView(msgspec.Struct, frozen=True):
    """One replica. `shares_log`: it shares the leader's log by reference."""

    node_id: int
    in_sync: bool
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    shares_log: bool


class ProducerView(msgspec.Struct, frozen=True):
    """A producer's state in a partition; `transaction_start` is -1 without an open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start: int


class PartitionView(msgspec.Struct, frozen=True):
    """One partition, with the state of its leader and of the controller."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    isr: list[int]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    replicas: list[ReplicaView]
    producers: list[ProducerView]


class StoredProducerView(msgspec.Struct, frozen=True):
    """A producer's state in a partition, with the partition; otherwise as `ProducerView`."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start: int


class TopicView(msgspec.Struct, frozen=True):
    """One topic; `records` counts offsets from log start to log end, gaps and markers included."""

    name: str
    topic_id: str
    internal: bool
    partitions: int
    replication_factor: int
    records: int
    configs: dict[str, str]


class RecordView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record; for a control record, `control` is its type.

    Key, value and header values are text if they are UTF-8, else hex with `0x`; None is null.
    """

    offset: int
    timestamp: int
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]] = []
    leader_epoch: int = -1
    codec: str = "none"
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    transactional: bool = False
    control: str | None = None


def topic_views(cluster: Cluster) -> list[TopicView]:
    """All topics, internal ones included, by name."""
    return [topic_view(cluster.topics[name]) for name in sorted(cluster.topics)]


def topic_view(topic: Topic) -> TopicView:
    return TopicView(
        name=topic.name,
        topic_id=uuid_text(topic.topic_id),
        internal=topic.is_internal,
        partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        records=sum(each.log_end_offset - each.log_start_offset for each in topic.partitions),
        configs=dict(topic.configs.overrides),
    )


def topic_of(cluster: Cluster, name: str) -> Topic:
    """The topic of this name. Raises ApiError if it does not exist."""
    topic = cluster.topics.get(name)
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no topic {name!r}{nearest(name, cluster.topics)}",
        )
    return topic


def partition_views(cluster: Cluster, topic: str | None = None) -> list[PartitionView]:
    """All partitions, or those of one topic. Raises ApiError if the topic does not exist."""
    topics = list(cluster.topics.values()) if topic is None else [topic_of(cluster, topic)]
    return [
        partition_view(each)
        for found in sorted(topics, key=lambda each: each.name)
        for each in found.partitions
    ]


def producer_views(cluster: Cluster, topic: str | None = None) -> list[StoredProducerView]:
    """The producers of all partitions, or of one topic, by id.

    Raises ApiError if the topic does not exist.
    """
    found = [
        StoredProducerView(view.topic, view.partition, *msgspec.structs.astuple(producer))
        for view in partition_views(cluster, topic)
        for producer in view.producers
    ]
    return sorted(found, key=lambda view: (view.producer_id, view.topic, view.partition))


def partition_of(cluster: Cluster, name: str, index: int) -> Partition:
    """The partition. Raises ApiError if it does not exist."""
    partitions = topic_of(cluster, name).partitions
    if not 0 <= index < len(partitions):
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {name!r} has partitions 0 to {len(partitions) - 1}, not {index}",
        )
    return partitions[index]


def partition_view(partition: Partition) -> PartitionView:
    return PartitionView(
        topic=partition.topic.name,
        partition=partition.index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        log_start_offset=partition.log_start_offset,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_end_offset=partition.log_end_offset,
        replicas=[_replica(partition, node_id) for node_id in partition.replicas],
        producers=[
            ProducerView(
                producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.transaction_start,
            )
            for producer_id, entry in partition.log.producers.entries.items()
        ],
    )


def _replica(partition: Partition, node_id: int) -> ReplicaView:
    replica = partition.replica(node_id)
    assert replica is not None  # the broker is one of the partition's replicas
    return ReplicaView(
        node_id=node_id,
        in_sync=node_id in partition.isr,
        log_start_offset=replica.log.start_offset,
        log_end_offset=replica.log.end_offset,
        high_watermark=replica.high_watermark,
        shares_log=node_id not in partition.own_replicas,
    )


def log_of(partition: Partition, node_id: int | None = None) -> ReplicaLog:
    """The leader's log, or that of broker `node_id`. Raises ApiError if that has no replica."""
    if node_id is None:
        return partition.log
    replica = partition.replica(node_id)
    if replica is None:
        raise ApiError(
            ErrorCode.REPLICA_NOT_AVAILABLE,
            f"broker {node_id} has no replica of {partition.topic.name}-{partition.index}",
        )
    return replica.log


def record_views(
    partition: Partition, offset: int, limit: int, node_id: int | None = None
) -> list[RecordView]:
    """At most `limit` records from `offset` on, of the leader's log or of broker `node_id`'s.

    Raises ApiError if that broker has no replica.
    """
    log = log_of(partition, node_id)
    found: list[RecordView] = []
    position = max(offset, log.start_offset)
    while position < log.end_offset and len(found) < limit:
        pieces, _ = log.read(position, log.end_offset, READ_BYTES_MAX, at_least_one=True)
        advanced = position
        for piece in pieces:
            for header, batch in split_batches(piece):
                advanced = header.next_offset
                for view in _records(header, batch):
                    if view.offset >= position and len(found) < limit:
                        found.append(view)
        if advanced == position:
            break
        position = advanced
    return found


def _records(header: BatchHeader, batch: memoryview) -> Iterator[RecordView]:
    try:
        records = list(iter_records(header, batch))
    except RecordsError:  # the leader has checked only the header
        return
    for number, record in enumerate(records):
        yield RecordView(
            offset=record.offset,
            timestamp=record.timestamp,
            key=text(record.key),
            value=text(record.value),
            headers=[(name, text(value)) for name, value in record.headers],
            leader_epoch=header.leader_epoch,
            codec=CompressionType(header.codec).name.lower(),
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            sequence=-1 if header.base_sequence < 0 else header.base_sequence + number,
            transactional=header.is_transactional,
            control=control_type(header, record),
        )


def control_type(header: BatchHeader, record: Record) -> str | None:
    """The type of a control record: "commit", "abort" or "other"; None for a record with data."""
    if not header.is_control or record.key is None or len(record.key) < 4:
        return None
    return {0: "abort", 1: "commit"}.get(int.from_bytes(record.key[2:4], "big"), "other")


def text(value: bytes | None) -> str | None:
    """Bytes as text: decoded if they are UTF-8, else hex with `0x`."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()
