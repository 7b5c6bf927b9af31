"""Records the changes of a cluster since the last frame, as frames for a file.

Changes show at three points: a partition notifies its watchers, the metadata cache reports changed
topics, and a few version numbers grow with every change of a setting. `take` compares only the
touched partitions, and their logs, with the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker.core.log.file_state import FileState
from mockbroker.core.snapshot.capture import capture_with, partition_image
from mockbroker.core.snapshot.changes import (
    ENCODER,
    ClusterDelta,
    PartitionDelta,
    Stage,
    TopicDelta,
)
from mockbroker.core.snapshot.frames import frame
from mockbroker.core.snapshot.image import PRISTINE, ClusterImage, LogImage
from mockbroker.core.snapshot.logs import (
    LogDelta,
    change_of,
    copy_of,
    fingerprint_of,
    set_stored,
    set_stored_from,
)
from mockbroker.core.snapshot.settings import capture_settings

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition, PartitionKey
    from mockbroker.core.snapshot.image import PartitionImage


class Recorder:
    """Records one cluster, from `ClusterState.record_with` on.

    `on_change` is called once when there is something to `take`. `needs_image` is set while the
    file must begin again with a whole image.
    """

    def __init__(self, cluster: Cluster, on_change: Callable[[], None]) -> None:
        self._cluster = cluster
        self._on_change = on_change
        self._notified = False
        # The touched partitions; True if more than their logs may have changed.
        self._touched: dict[PartitionKey, bool] = {}
        self._topics_touched: dict[Topic, None] = {}
        # The contents of the file:
        self._topics: dict[bytes, dict[str, str]] = {}  # overrides
        self._partitions: dict[PartitionKey, PartitionImage] = {}
        self._logs: dict[int, FileState] = {}
        self._settings = b""
        self._others_version = 0
        cluster.acls.on_change.append(self._other_changed)
        cluster.on_broker_state.append(self._other_changed)
        self._versions = self._current_versions()
        self._last_log_id = 0
        # The contents of the next frame:
        self._changes: list[LogDelta] = []
        self._pieces: list[memoryview] = []
        self.needs_image = True

    # -- notifications -----------------------------------------------------------------------------

    def partition_changed(self, partition: Partition) -> None:
        """A partition's log, watermarks or metadata changed."""
        self._touched.setdefault(partition.key, False)
        self._notify()

    def topic_changed(self, topic: Topic) -> None:
        """A topic was created, deleted or configured, or its partitions got other leaders or
        ISRs.
        """
        self._topics_touched[topic] = None
        self._notify()

    def _notify(self) -> None:
        if not self._notified:
            self._notified = True
            self._on_change()

    def begin_again(self) -> None:
        """The cluster was restored: the file needs a whole image again."""
        self.needs_image = True
        self._notified = True
        self._on_change()

    # -- changes -----------------------------------------------------------------------------------

    def take(self, synced_bytes: int = 0) -> list[bytes | memoryview]:
        """The frame of all that has changed, as the pieces to write; empty if nothing has.

        The disk has `synced_bytes` of the file.
        """
        self._notified = False
        versions = self._current_versions()
        if not self._touched and not self._topics_touched and versions == self._versions:
            return []
        gone, topics = self._take_topics()
        partitions = self._take_partitions()
        settings = b"" if versions == self._versions else self._take_settings()
        ids_moved = versions[-1] != self._versions[-1]
        self._versions = versions
        changes, pieces = self._changes, self._pieces
        if not (gone or topics or partitions or settings or changes or ids_moved):
            return []
        self._changes, self._pieces = [], []
        cluster = self._cluster
        head = ClusterDelta(
            Stage.CHANGE,
            cluster.runtime.now_ms(),
            *cluster.runtime.ids.position,
            settings,
            gone,
            topics,
            partitions,
            changes,
        )
        return frame(ENCODER.encode(head), pieces, synced_bytes)

    def nothing_new(self, synced_bytes: int) -> list[bytes | memoryview]:
        """A frame without a change, which says how much of the file the disk has."""
        runtime = self._cluster.runtime
        head = ClusterDelta(Stage.CHANGE, runtime.now_ms(), *runtime.ids.position)
        return frame(ENCODER.encode(head), [], synced_bytes)

    def _current_versions(self) -> tuple[int, ...]:
        """Version numbers; they differ after any change of the settings."""
        cluster = self._cluster
        tokens = cluster.delegation_tokens.tokens
        return (
            cluster.image.epoch,
            cluster.configs.version,
            cluster.features.epoch,
            self._others_version,
            cluster.controller.fencing_count,
            hash(tuple(tokens.values())) if tokens else 0,
            cluster.runtime.ids.position[1],
        )

    def _other_changed(self, *_: object) -> None:
        self._others_version += 1

    def _take_settings(self) -> bytes:
        settings = ENCODER.encode(capture_settings(self._cluster))
        if settings == self._settings:
            return b""
        self._settings = settings
        return settings

    def _take_topics(self) -> tuple[list[bytes], list[TopicDelta]]:
        gone: list[bytes] = []
        topics: list[TopicDelta] = []
        touched, self._topics_touched = self._topics_touched, {}
        for topic in touched:
            topic_id = topic.topic_id
            known = self._topics.get(topic_id)
            if self._cluster.topics_by_id.get(topic_id) is not topic:
                if known is not None:
                    gone.append(topic_id)
                    self._forget(topic)
                continue
            if known != topic.configs.overrides:
                overrides = self._topics[topic_id] = dict(topic.configs.overrides)
                topics.append(TopicDelta(topic_id, topic.name, overrides))
            self._touched.update((partition.key, True) for partition in topic.partitions)
        return gone, topics

    def _forget(self, topic: Topic) -> None:
        del self._topics[topic.topic_id]
        for partition in topic.partitions:
            image = self._partitions.pop(partition.key, None)
            if image is not None:
                self._drop_logs(image, None)

    def _take_partitions(self) -> list[PartitionDelta]:
        found: list[PartitionDelta] = []
        touched, self._touched = self._touched, {}
        for key, altogether in touched.items():
            partition = self._cluster.image.partition_by_id(*key)
            if partition is None or key[0] not in self._topics:
                continue
            known = self._partitions.get(key)
            if not altogether and known is not None and self._only_log_changed(partition, known):
                self._enter(partition.log, partition.high_watermark)
                continue
            image = partition_image(self._cluster, partition, self._enter)
            if image != known:
                self._partitions[key] = image
                found.append(PartitionDelta(*key, image))
                if known is not None:
                    self._drop_logs(known, image)
        return found

    @staticmethod
    def _only_log_changed(partition: Partition, known: PartitionImage) -> bool:
        """Whether only the log that the file has can have changed."""
        stored = partition.log.file_state
        return (
            stored is not None
            and stored.log_id == known.log_id
            and not partition.own_replicas
            and not known.own
        )

    def _drop_logs(self, former: PartitionImage, now: PartitionImage | None) -> None:
        for log_id in former.log_ids - (set() if now is None else now.log_ids):
            self._logs.pop(log_id, None)

    def _enter(self, log: ReplicaLog, high_watermark: int) -> int:
        """The id of a log in use; its changes are added to the frame."""
        stored = log.file_state
        fork_of = 0
        if stored is None or (stored.log_id and self._logs.get(stored.log_id) is not stored):
            stored = log.file_state = FileState()
        elif stored.mark == fingerprint_of(log, high_watermark):
            return stored.log_id
        if not stored.log_id:
            fork_of = self._origin_of(stored)
            self._number(stored)
        change, pieces = change_of(log, high_watermark, stored, fork_of)
        self._changes.append(change)
        self._pieces += pieces
        return stored.log_id

    def _origin_of(self, stored: FileState) -> int:
        """The file's log that a new one was forked from, or 0."""
        origin, stored.origin = stored.origin, None
        if origin is not None:
            state, rewrites = origin
            if self._logs.get(state.log_id) is state and state.rewrites == rewrites:
                return state.log_id
        stored.begin = stored.end = 0
        return 0

    def _number(self, stored: FileState) -> None:
        self._last_log_id += 1
        stored.log_id = self._last_log_id
        self._logs[stored.log_id] = stored

    # -- beginning ---------------------------------------------------------------------------------

    def resume(self, image: ClusterImage) -> None:
        """Continue a file with `image`, from which the cluster has been restored."""
        cluster = self._cluster
        for saved_topic in image.topics:
            self._topics[saved_topic.topic_id] = saved_topic.overrides
            topic = cluster.topics_by_id[saved_topic.topic_id]
            for partition, saved in zip(topic.partitions, saved_topic.partitions, strict=True):
                self._partitions[partition.key] = saved
                if saved.log_id != PRISTINE:
                    self._adopt(partition.log, saved.log_id, image)
                for own in saved.own:
                    replica = partition.own_replicas.get(own.node_id)
                    if replica is not None:
                        self._adopt(replica.log, own.log_id, image)
        self._last_log_id = max(image.logs, default=0)
        self._settings = ENCODER.encode(image.settings)
        # The cluster may have changed since: compare everything once.
        self._versions = tuple(-1 for _ in self._versions)
        self._topics_touched = dict.fromkeys(cluster.topics.values())
        self.needs_image = False
        self._notified = True

    def _adopt(self, log: ReplicaLog, log_id: int, image: ClusterImage) -> None:
        stored = log.file_state = self._logs[log_id] = FileState(log_id)
        set_stored_from(image.logs[log_id], stored)

    def full_image(self) -> ClusterImage:
        """The whole image that begins a file; later `take`s continue it."""
        logs: dict[int, LogImage] = {}
        partitions: dict[PartitionKey, PartitionImage] = {}
        former, self._logs = self._logs, {}

        def enter(log: ReplicaLog, high_watermark: int) -> int:
            stored = log.file_state
            if stored is None or former.get(stored.log_id) is not stored:
                stored = log.file_state = FileState()
                self._number(stored)
            self._logs[stored.log_id] = stored
            set_stored(log, high_watermark, stored)
            stored.rewrites += 1
            logs[stored.log_id] = LogImage(copy_of(log), high_watermark)
            return stored.log_id

        cluster = self._cluster
        image = capture_with(cluster, enter, logs)
        for topic in image.topics:
            for index, saved in enumerate(topic.partitions):
                partitions[topic.topic_id, index] = saved
        self._partitions = partitions
        self._topics = {topic.topic_id: topic.overrides for topic in image.topics}
        self._settings = ENCODER.encode(image.settings)
        self._versions = self._current_versions()
        self._touched.clear()
        self._topics_touched.clear()
        self.needs_image = self._notified = False
        return image
