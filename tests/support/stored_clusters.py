"""Clusters in files that are bytes in memory, and all that can be seen of a cluster."""

from __future__ import annotations

import io
from typing import Any

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import Partition
from mockbroker.core.snapshot.builder import Builder
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.changes import image_frames
from mockbroker.core.snapshot.frames import check_file_header, file_header, read_frames
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.core.snapshot.recorder import Recorder
from mockbroker.core.snapshot.restore import restore

NOW_MS = 1_700_000_000_000


class Stored:
    """A file that follows a cluster; it begins with the image of the cluster as it is now."""

    def __init__(self, cluster: Cluster) -> None:
        self.calls = 0
        self.recorder = Recorder(cluster, self._called)
        cluster.record_with(self.recorder)
        self.data = bytearray(whole(self.recorder.full_image()))

    def resumed(self, **options: Any) -> Cluster:
        """A new process goes on with the file: the cluster that it has then."""
        image = loaded(self.data)
        cluster = revived(image, **options)
        self.recorder = Recorder(cluster, self._called)
        cluster.record_with(self.recorder)
        self.recorder.resume(image)
        return cluster

    def _called(self) -> None:
        self.calls += 1

    def flush(self) -> int:
        """Write what has changed; how many bytes that takes."""
        before = len(self.data)
        if self.recorder.needs_image:
            self.data[:] = whole(self.recorder.full_image())
        for piece in self.recorder.take():
            self.data += piece
        return len(self.data) - before

    def begin_again(self) -> None:
        """What compaction of the file comes to."""
        self.flush()
        self.data[:] = whole(self.recorder.full_image())


def whole(image: ClusterImage) -> bytes:
    """A file that holds an image and nothing else."""
    return file_header() + b"".join(b"".join(pieces) for pieces in image_frames(image))


def loaded(data: bytes | bytearray) -> ClusterImage:
    """The image that a file comes to. Raises what reading it raises."""
    builder = Builder()
    file = io.BytesIO(data)
    for frame in read_frames(file, check_file_header(file), len(data)):
        builder.add(frame)
    assert builder.complete
    return builder.image()


def revived(image: ClusterImage, **options: Any) -> Cluster:
    """A new cluster, in a new process as it were, that is what an image says."""
    specs = [BrokerSpec(each.node_id, each.rack) for each in image.settings.brokers]
    options.setdefault("now_ms", lambda: image.at_ms)
    options.setdefault("configs", image.settings.static_configs)
    cluster = Cluster(specs, seed=99, **options)
    restore(cluster, image)
    return cluster


def log_state(log: ReplicaLog) -> dict[str, Any]:
    """All that a log is."""
    segments, end, producers = log.layout, log.end_position, log.producers
    return {
        "bytes": b"".join(log.batches()),
        "offsets": list(log._base_offsets),
        "maxima": list(log._max_timestamps),
        "start": log.start_offset,
        "end": log.end_offset,
        "dirty from": log.first_dirty_offset,
        "holes": log._has_holes,
        "size": log.size,
        "freed": log._freed_maxima,
        "epochs": (log.epochs.entries, log.epochs.latest),
        "segments": (
            segments.base_offsets,
            [end - position for position in segments.positions],
            segments.first_timestamps,
            segments.max_timestamps,
            segments.modified_ms,
            segments._started_ms,
            segments._index_entries,
            segments._time_index_entries,
            segments._indexed_timestamp,
        ),
        "producers": {
            producer_id: (
                entry.epoch,
                entry.batches,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_start,
            )
            for producer_id, entry in producers.entries.items()
        },
        "ongoing": list(producers._ongoing.items()),
        "unreplicated": producers._unreplicated,
        "aborted": producers.aborted,
    }


def partition_state(partition: Partition) -> dict[str, Any]:
    """All that a partition is."""
    return {
        "replicas": partition.replicas,
        "isr": partition.isr,
        "leader": (
            partition.leader_id,
            partition.leader_epoch,
            partition.leader_epoch_start_offset,
        ),
        "epoch": partition.partition_epoch,
        "elr": (partition.elr, partition.last_known_elr),
        "watermarks": (partition.high_watermark, partition.last_stable_offset),
        "log": log_state(partition.log),
        "own": {
            node_id: (own.high_watermark, log_state(own.log))
            for node_id, own in partition.own_replicas.items()
        },
    }


def cluster_state(cluster: Cluster) -> dict[str, Any]:
    """All that a cluster is, as far as a snapshot keeps it."""
    image = capture(cluster)
    return {
        "settings": image.settings,
        "topics": {
            name: (
                topic.topic_id,
                topic.configs.overrides,
                [partition_state(partition) for partition in topic.partitions],
            )
            for name, topic in cluster.topics.items()
        },
        "reassignments": cluster.reassignments,
    }
