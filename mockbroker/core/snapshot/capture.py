"""Captures the image of a cluster. Bytes of records are shared, not copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker.core.snapshot.image import (
    PRISTINE,
    ClusterImage,
    IdsImage,
    LogImage,
    PartitionImage,
    ReplicaImage,
    TopicImage,
)
from mockbroker.core.snapshot.logs import copy_of, is_pristine
from mockbroker.core.snapshot.settings import capture_settings

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.replication.replica import Replica

# Adds a log with its high watermark to an image; returns its log id.
Enter = Callable[["ReplicaLog", int], int]


def capture(cluster: Cluster) -> ClusterImage:
    """The image of `cluster`."""
    logs: dict[int, LogImage] = {}

    def enter(log: ReplicaLog, high_watermark: int) -> int:
        log_id = len(logs) + 1
        logs[log_id] = LogImage(copy_of(log), high_watermark)
        return log_id

    return capture_with(cluster, enter, logs)


def capture_with(cluster: Cluster, enter: Enter, logs: dict[int, LogImage]) -> ClusterImage:
    """As `capture`, with log ids of the caller, whose `enter` fills `logs`."""
    topics = [
        TopicImage(
            topic.name,
            topic.topic_id,
            dict(topic.configs.overrides),
            [partition_image(cluster, partition, enter) for partition in topic.partitions],
        )
        for topic in cluster.topics.values()
    ]
    return ClusterImage(
        at_ms=cluster.runtime.now_ms(),
        ids=IdsImage(*cluster.runtime.ids.position),
        settings=capture_settings(cluster),
        topics=topics,
        logs=logs,
    )


def partition_image(cluster: Cluster, partition: Partition, enter: Enter) -> PartitionImage:
    """The image of a partition; `enter` adds its logs."""
    log, high_watermark = partition.log, partition.high_watermark
    own: tuple[ReplicaImage, ...] = ()
    if partition.own_replicas:
        leaders = partition.own_replicas.get(partition.leader_id)
        if leaders is not None:  # its broker has no image with this leadership yet
            log, high_watermark = leaders.log, _high_watermark(cluster, partition, leaders)
        own = tuple(
            ReplicaImage(
                replica.node_id, enter(replica.log, _high_watermark(cluster, partition, replica))
            )
            for replica in partition.own_replicas.values()
            if replica is not leaders
        )
    pristine = is_pristine(log, partition.leader_epoch)
    log_id = PRISTINE if pristine else enter(log, high_watermark)
    replicas = tuple(partition.replicas)
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    if cluster.reassignments:
        reassignment = cluster.replication_control.reassignment_of(partition)
        adding, removing = tuple(reassignment.adding), tuple(reassignment.removing)
    dirs: list[tuple[int, str]] = []
    for node_id in replicas:
        broker = cluster.brokers.get(node_id)
        if broker is not None and broker.log_dirs.has_several:
            moving_to = broker.log_dirs.futures.get(partition.key)
            dirs.append((node_id, moving_to or broker.log_dirs.dir_of(partition)))
    return PartitionImage(
        replicas,
        tuple(partition.isr),
        partition.leader_id,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.leader_epoch_start_offset,
        log_id,
        partition.elr,
        partition.last_known_elr,
        own,
        adding,
        removing,
        tuple(dirs),
    )


def _high_watermark(cluster: Cluster, partition: Partition, replica: Replica) -> int:
    """A broker with an older image moves the high watermark in the partition of that image."""
    seen = cluster.metadata.image_of(replica.node_id).partition_by_id(*partition.key)
    known = None if seen is None or seen is partition else seen.replica(replica.node_id)
    if known is None or known.log is not replica.log:
        return replica.high_watermark
    return known.high_watermark
