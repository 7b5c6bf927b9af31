"""Looking into a cluster from outside: the one place where a simulation knows its insides.

What the controller knows is `cluster.topics`. What a broker believes may be older; `world_of` is
what it goes by.
"""

from __future__ import annotations

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
from mockbroker.simulation.logs import BatchView, LogView, batches_of

TRANSACTIONS = TRANSACTION_STATE_TOPIC  # where transaction coordinators keep what they know


class ReplicaView(NamedTuple):
    """One broker's copy of a partition, and whether the broker takes itself for its leader."""

    node_id: int
    log: ReplicaLog
    high_watermark: int
    last_stable_offset: int
    leads: bool
    leader_epoch: int  # as that broker knows it


def partitions(cluster: Cluster) -> Iterator[Partition]:
    """Every partition that the controller knows."""
    for topic in cluster.topics.values():
        yield from topic.partitions


def all_partitions(cluster: Cluster) -> Iterator[Partition]:
    """Every partition in every broker's image, each object once."""
    return cluster.metadata.partitions()


def partition_of(cluster: Cluster, topic_id: bytes, index: int) -> Partition | None:
    """The partition as the controller knows it; None where there is none."""
    return cluster.image.partition_by_id(topic_id, index)


def view_mark(cluster: Cluster) -> tuple[int, ...]:
    """Changes whenever there may be partition objects that were not there before."""
    return (cluster.image.epoch, *(id(broker.image) for broker in cluster.processes.values()))


def replicas(cluster: Cluster, partition: Partition) -> list[ReplicaView]:
    """The copies of a partition, each as its own broker has it. Stopped brokers have theirs.

    Where all of them are the leader's log, that is looked at alone.
    """
    newest = cluster.image
    if not partition.own_replicas and all(b.image is newest for b in cluster.processes.values()):
        leader = cluster.processes.get(partition.leader_id)
        return [] if leader is None else [_view_of(leader, partition)]
    found = []
    for node_id in partition.replicas:
        broker = cluster.processes.get(node_id)
        if broker is None:
            continue
        seen = broker.image.partition_by_id(*partition.key)
        if seen is not None and node_id in seen.replicas:
            found.append(_view_of(broker, seen))
    return found


def _view_of(broker: Broker, seen: Partition) -> ReplicaView:
    node_id = broker.node_id
    own = seen.own_replicas.get(node_id)
    return ReplicaView(
        node_id,
        seen.log if own is None else own.log,
        seen.high_watermark if own is None else own.high_watermark,
        seen.last_stable_offset_on(node_id),
        seen.leader_id == node_id and broker.state == RUNNING,
        seen.leader_epoch,
    )


def log_view(partition: Partition) -> LogView:
    """The log of a partition's leader, with the batches that readers may reach."""
    log = partition.log
    return LogView(
        partition.topic.name,
        partition.topic.topic_id,
        partition.index,
        partition.topic.is_internal,
        partition.leader_id,
        log.start_offset,
        log.end_offset,
        has_holes(log),
        list(_batches(log)),
    )


def _batches(log: ReplicaLog) -> Iterator[BatchView]:
    start = log.start_offset
    for batch in log.batches():
        for view in batches_of(batch):
            if view.last_offset >= start:
                yield view


def batches_between(log: ReplicaLog, begin: int, end: int) -> Iterator[BatchView]:
    """The batches of a log from the one that holds `begin` up to `end`."""
    pieces, _ = log.read(begin, end, 1 << 40, at_least_one=True)
    for piece in pieces:
        yield from batches_of(piece)


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
    """The groups that have members or wait for something, with their state."""
    return [
        f"{view.group} is {view.state}"
        for view in group_views(cluster)
        if view.state not in ("Empty", "Dead")
    ]


def group_members(cluster: Cluster) -> dict[str, list[str]]:
    """The member ids of each group, and the instance ids after a colon where there are some."""
    return {view.group: [each.member_id for each in view.members] for view in group_views(cluster)}


def is_stranded(partition: Partition, *, configured: bool) -> bool:
    """Whether nobody is elected here, as by Kafka: only brokers are eligible that hold no replica
    any more since a reassignment, or none are since a config of the topic was written.
    """
    if partition.leader_id >= 0:
        return False
    eligible = set(partition.elr)
    if not eligible:
        return configured and not partition.isr and not partition.last_known_elr
    return not eligible & set(partition.replicas)


def is_coordinator_log(topic: str) -> bool:
    """Whether coordinators keep their state in this topic."""
    return topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
