"""Builds an image from frames: those of a whole image first, then each change."""

from __future__ import annotations

import msgspec

from mockbroker.core.ids import state_after
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.core.snapshot.changes import (
    DECODER,
    SETTINGS_DECODER,
    ClusterDelta,
    PartitionDelta,
    Stage,
)
from mockbroker.core.snapshot.frames import DamageError, Frame
from mockbroker.core.snapshot.image import (
    PRISTINE,
    ClusterImage,
    IdsImage,
    LogImage,
    PartitionImage,
    SettingsImage,
    TopicImage,
)
from mockbroker.core.snapshot.logs import BadLogError, apply, copy_of

# Ids without a written effect, such as those of members that never joined, are in no file. At most
# this number may have been drawn since the last frame.
DRAWS_SINCE = 1 << 32
_NOT_UNDERSTOOD = (
    *(msgspec.MsgspecError, BadLogError, ValueError, KeyError, IndexError),
    RecursionError,  # arrays nested very deeply
)


class Builder:
    """Adds the frames of one file in their order. `complete` is True once the image is whole."""

    def __init__(self) -> None:
        self.complete = False
        self._at_ms = 0
        self._ids = IdsImage(0, 0)
        self._settings: SettingsImage | None = None
        self._names: dict[bytes, tuple[str, dict[str, str]]] = {}
        self._partitions: dict[bytes, dict[int, PartitionImage]] = {}
        self._logs: dict[int, ReplicaLog] = {}
        self._high_watermarks: dict[int, int] = {}

    def add(self, frame: Frame) -> None:
        """Add the next frame. Raises DamageError if it does not follow the frames before."""
        try:
            changes = DECODER.decode(frame.head)
            self._check_stage(changes)
            self._take(changes, memoryview(frame.body))
        except _NOT_UNDERSTOOD as error:
            raise DamageError(frame.offset, f"a frame cannot be understood: {error}") from error

    def _check_stage(self, changes: ClusterDelta) -> None:
        if (changes.stage is Stage.CHANGE) is not self.complete:
            raise BadLogError("it does not follow the frame before")
        self.complete = changes.stage is not Stage.PART

    def _take(self, changes: ClusterDelta, body: memoryview) -> None:
        self._at_ms = max(self._at_ms, changes.at_ms)
        self._ids = IdsImage(changes.ids_state, changes.producer_block)
        if changes.settings:
            self._settings = SETTINGS_DECODER.decode(changes.settings)
        for topic_id in changes.gone:
            del self._names[topic_id]
            for partition in self._partitions.pop(topic_id).values():
                self._drop_logs(partition, None)
        for topic in changes.topics:
            self._names[topic.topic_id] = topic.name, topic.overrides
            self._partitions.setdefault(topic.topic_id, {})
        position = 0
        for change in changes.logs:
            end = position + change.front_bytes + change.tail_bytes
            former = self._logs.get(change.log_id)
            if change.fork_of:
                former = copy_of(self._logs[change.fork_of])
            log = self._logs[change.log_id] = apply(former, change, body[position:end])
            _check_log(log, change.high_watermark)
            self._high_watermarks[change.log_id] = change.high_watermark
            position = end
        # Logs first: a new log may be a copy of one that is dropped here.
        for partition_change in changes.partitions:
            _check_partition(partition_change)
            partitions = self._partitions[partition_change.topic_id]
            former_image = partitions.get(partition_change.index)
            partitions[partition_change.index] = partition_change.image
            if former_image is not None:
                self._drop_logs(former_image, partition_change.image)

    def _drop_logs(self, former: PartitionImage, now: PartitionImage | None) -> None:
        for log_id in former.log_ids - (set() if now is None else now.log_ids):
            self._logs.pop(log_id, None)

    def image(self) -> ClusterImage:
        """The image of all added frames. Raises DamageError if they make none."""
        if self._settings is None:
            raise DamageError(0, "there is nothing that could be kept")
        if len({name for name, _ in self._names.values()}) < len(self._names):
            raise DamageError(0, "two topics have one name")
        topics = []
        logs: dict[int, LogImage] = {}
        for topic_id, (name, overrides) in self._names.items():
            by_index = self._partitions[topic_id]
            partitions = []
            if sorted(by_index) != list(range(len(by_index))) or not by_index:
                raise DamageError(0, f"topic {name} lacks partitions")
            for index in range(len(by_index)):
                partition = self._readable(by_index[index])
                partitions.append(partition)
                for log_id in partition.log_ids:
                    logs[log_id] = LogImage(self._logs[log_id], self._high_watermarks[log_id])
            topics.append(TopicImage(name, topic_id, overrides, partitions))
        ids = IdsImage(state_after(self._ids.state, DRAWS_SINCE), self._ids.producer_block)
        return ClusterImage(self._at_ms, ids, self._settings, topics, logs)

    def _readable(self, partition: PartitionImage) -> PartitionImage:
        """The partition without the logs of frames behind the damage."""
        if all(log_id in self._logs for log_id in partition.log_ids):
            return partition
        own = tuple(each for each in partition.own if each.log_id in self._logs)
        log_id = partition.log_id if partition.log_id in self._logs else PRISTINE
        if log_id == PRISTINE:
            return msgspec.structs.replace(
                partition, log_id=log_id, own=own, leader_epoch_start_offset=0
            )
        return msgspec.structs.replace(partition, own=own)


def _check_log(log: ReplicaLog, high_watermark: int) -> None:
    """Raises BadLogError for a log that no cluster has."""
    if not 0 <= log.start_offset <= log.end_offset or not 0 <= high_watermark <= log.end_offset:
        raise BadLogError(
            f"a log from {log.start_offset} to {log.end_offset} has no high watermark "
            f"{high_watermark}"
        )


def _check_partition(change: PartitionDelta) -> None:
    """Raises BadLogError for a partition that no cluster has."""
    image = change.image
    replicas = set(image.replicas)
    in_sync = {*image.isr, *image.elr}
    leaders = replicas | {NO_LEADER}
    if not replicas or not in_sync <= replicas or image.leader_id not in leaders:
        raise BadLogError(f"partition {change.index} has a leader or an ISR without a replica")
    if min(image.leader_epoch, image.partition_epoch, change.index) < 0:
        raise BadLogError(f"partition {change.index} has a negative epoch or index")
