"""Looking into a cluster from outside: the one place where a simulation knows its insides.

What the controller knows is `cluster.topics`. What a broker believes may be older; `world_of` is
what it goes by.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from mockbroker.core.broker import Broker
from mockbroker.core.broker_life import RUNNING
from mockbroker.core.cluster import Cluster
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.partition import Partition
from mockbroker.core.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker.core.views.groups import group_views
from mockbroker.core.views.transactions import transaction_views

_HEAD = struct.Struct(">qiibIhiqqqhii")  # of a batch, up to its record count
_CONTROL = 0x20
_TRANSACTIONAL = 0x10
_COMMIT = 1
# Behind the header: length, attributes, two deltas, length of the key, and its version.
_MARKER_TYPE_AT = 61 + 5 + 2


class BatchView(NamedTuple):
    """One batch of a log. `marker` is None for data, else whether it commits."""

    base_offset: int
    last_offset: int
    epoch: int  # the leader's
    crc: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    transactional: bool
    marker: bool | None


class ReplicaView(NamedTuple):
    """One broker's copy of a partition, and whether the broker takes itself for its leader."""

    node_id: int
    log: ReplicaLog
    high_watermark: int
    last_stable_offset: int
    leads: bool
    leader_epoch: int  # as that broker knows it


def world_of(broker: Broker) -> Cluster:
    """The cluster as a broker sees it."""
    return broker.cluster


def partitions(cluster: Cluster) -> Iterator[Partition]:
    """Every partition that the controller knows."""
    for topic in cluster.topics.values():
        yield from topic.partitions


def all_partitions(cluster: Cluster) -> Iterator[Partition]:
    """Every partition in every broker's view, each object once."""
    yield from partitions(cluster)
    seen = {id(cluster)}
    for broker in cluster.brokers.values():
        world = world_of(broker)
        if id(world) not in seen:
            seen.add(id(world))
            yield from partitions(world)


def view_mark(cluster: Cluster) -> tuple[int, ...]:
    """Changes whenever there may be partitions that were not there before."""
    worlds = {id(world_of(broker)) for broker in cluster.brokers.values()}
    return (cluster.metadata_epoch, *sorted(worlds))


def replicas(cluster: Cluster, partition: Partition) -> list[ReplicaView]:
    """The copies of a partition, each as its own broker has it. Stopped brokers have theirs."""
    topic_id, index = partition.topic.topic_id, partition.index
    found = []
    for node_id in partition.replicas:
        broker = cluster.brokers.get(node_id)
        seen: Partition | None = partition
        if broker is not None:
            seen = world_of(broker).partition_by_id(topic_id, index)
        replica = None if seen is None else seen.replica(node_id)
        if seen is None or replica is None:
            continue
        leads = seen.leader_id == node_id and broker is not None and broker.state == RUNNING
        found.append(
            ReplicaView(
                node_id,
                replica.log,
                replica.high_watermark,
                seen.last_stable_offset if leads else replica.last_stable_offset,
                leads,
                seen.leader_epoch,
            )
        )
    return found


def leader_log(partition: Partition) -> ReplicaLog | None:
    """The log of the leader that the controller knows; None where there is no leader."""
    return partition.log if partition.leader_id >= 0 else None


def batches(log: ReplicaLog) -> Iterator[BatchView]:
    """The batches of a log that readers may reach, oldest first."""
    start = log.start_offset
    for batch in log.batches():
        (
            base,
            _,
            epoch,
            _,
            crc,
            attributes,
            delta,
            _,
            _,
            producer_id,
            producer_epoch,
            sequence,
            count,
        ) = _HEAD.unpack_from(batch)
        if base + delta < start:
            continue
        marker = None
        if attributes & _CONTROL:
            marker = batch[_MARKER_TYPE_AT + 1] == _COMMIT
        yield BatchView(
            base,
            base + delta,
            epoch,
            crc,
            producer_id,
            producer_epoch,
            sequence,
            count,
            bool(attributes & _TRANSACTIONAL),
            marker,
        )


def has_holes(log: ReplicaLog) -> bool:
    """Whether compaction has taken offsets out of a log."""
    return log._has_holes


def bytes_between(log: ReplicaLog, begin: int, end: int) -> bytes:
    """The batches of a log from the one that holds `begin` up to `end`."""
    pieces, _ = log.read(begin, end, 1 << 40, at_least_one=True)
    return b"".join(pieces)


def open_transactions(cluster: Cluster) -> list[str]:
    """The transactional ids with a transaction that is not over, with their state."""
    return [
        f"{view.transactional_id} is {view.state}"
        for view in transaction_views(cluster)
        if view.state in ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
    ]


def groups_at_work(cluster: Cluster) -> list[str]:
    """The groups that are neither stable nor empty, with their state."""
    return [
        f"{view.group} is {view.state}"
        for view in group_views(cluster)
        if view.state not in ("Stable", "Empty", "Dead")
    ]


def group_members(cluster: Cluster) -> dict[str, list[str]]:
    """The member ids of each group, and the instance ids after a colon where there are some."""
    return {view.group: [each.member_id for each in view.members] for view in group_views(cluster)}


def is_coordinator_log(topic: str) -> bool:
    """Whether coordinators keep their state in this topic."""
    return topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
