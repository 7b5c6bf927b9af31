"""An image from frames: a whole one first, and then each change on top."""

from __future__ import annotations

import msgspec

from mockbroker.core.ids import state_after
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.snapshot.changes import DECODER, SETTINGS_DECODER, Changes, Stage
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
from mockbroker.core.snapshot.logs import BadLogError, apply, twin_of

# Ids that were drawn and came to nothing that is written, such as those of members that never
# joined, are in nobody's file; so many may have been drawn since the last frame.
DRAWS_SINCE = 1 << 32


class Builder:
    """Takes the frames of one file in their order. `complete` once there is a whole image."""

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
        """Take the next frame. Raises DamageError when it does not follow those before."""
        try:
            changes = DECODER.decode(frame.head)
            self._check_stage(changes)
            self._take(changes, memoryview(frame.body))
        except (msgspec.MsgspecError, BadLogError, ValueError, KeyError, IndexError) as error:
            raise DamageError(frame.offset, f"a frame cannot be understood: {error}") from error

    def _check_stage(self, changes: Changes) -> None:
        if (changes.stage is Stage.CHANGE) is not self.complete:
            raise BadLogError("it does not follow the one before it")
        self.complete = changes.stage is not Stage.PART

    def _take(self, changes: Changes, body: memoryview) -> None:
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
                former = twin_of(self._logs[change.fork_of])
            self._logs[change.log_id] = apply(former, change, body[position:end])
            self._high_watermarks[change.log_id] = change.high_watermark
            position = end
        # Logs first: one that is given up for another may be what that is a copy of.
        for partition_change in changes.partitions:
            partitions = self._partitions[partition_change.topic_id]
            former_image = partitions.get(partition_change.index)
            partitions[partition_change.index] = partition_change.image
            if former_image is not None:
                self._drop_logs(former_image, partition_change.image)

    def _drop_logs(self, former: PartitionImage, now: PartitionImage | None) -> None:
        for log_id in former.log_ids - (set() if now is None else now.log_ids):
            self._logs.pop(log_id, None)

    def image(self) -> ClusterImage:
        """The image of all that has been taken so far. Raises DamageError if that makes none."""
        if self._settings is None:
            raise DamageError(0, "there is nothing that could be kept")
        topics = []
        logs: dict[int, LogImage] = {}
        for topic_id, (name, overrides) in self._names.items():
            by_index = self._partitions[topic_id]
            partitions = []
            for index in sorted(by_index):
                partition = self._readable(by_index[index])
                partitions.append(partition)
                for log_id in partition.log_ids:
                    logs[log_id] = LogImage(self._logs[log_id], self._high_watermarks[log_id])
            topics.append(TopicImage(name, topic_id, overrides, partitions))
        ids = IdsImage(state_after(self._ids.state, DRAWS_SINCE), self._ids.producer_block)
        return ClusterImage(self._at_ms, ids, self._settings, topics, logs)

    def _readable(self, partition: PartitionImage) -> PartitionImage:
        """The partition without the logs that were to come after the damage."""
        if all(log_id in self._logs for log_id in partition.log_ids):
            return partition
        own = tuple(each for each in partition.own if each.log_id in self._logs)
        log_id = partition.log_id if partition.log_id in self._logs else PRISTINE
        if log_id == PRISTINE:
            return msgspec.structs.replace(
                partition, log_id=log_id, own=own, leader_epoch_start_offset=0
            )
        return msgspec.structs.replace(partition, own=own)
