"""The metadata images of all brokers: the newest, and those of brokers without the controller.

Images that agree on a partition share one object. Before the controller changes a partition,
`unshare` separates its object from the frozen images. The leader keeps the object, because its log,
watermarks and delayed operations belong to it.

Source: MetadataCache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.replication.replica import UNKNOWN_EPOCH, Replica

if TYPE_CHECKING:
    from mockbroker.core.log.dirs import LogDirs
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.replication.replica import FollowerState


class BrokerProcess(Protocol):
    """A broker's process, as the other brokers see it; `state` is one of `broker_life`."""

    @property
    def node_id(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def image(self) -> MetadataImage: ...
    @property
    def log_dirs(self) -> LogDirs: ...


class TopicRecorder(Protocol):
    """Records what changes in topics."""

    def topic_changed(self, topic: Topic) -> None:
        """The topic, its configs, a leader or an ISR changed."""
        ...


class MetadataCache:
    """The images of one cluster's brokers.

    `image` is the newest image, which the controller changes in place; `processes` are the brokers
    with a process, registered or not, by their ids. `all_have_newest_image` is True while no broker
    has a frozen image.
    """

    __slots__ = (
        "all_have_newest_image",
        "image",
        "on_configs_changed",
        "on_topic_created",
        "on_topic_deleted",
        "processes",
        "recorder",
    )

    def __init__(self, image: MetadataImage, processes: Mapping[int, BrokerProcess]) -> None:
        self.image = image
        self.processes = processes
        self.all_have_newest_image = True
        self.recorder: TopicRecorder | None = None
        # Called with a topic after its creation, its deletion, or a change of its configs.
        self.on_topic_created: list[Callable[[Topic], None]] = []
        self.on_topic_deleted: list[Callable[[Topic], None]] = []
        self.on_configs_changed: list[Callable[[Topic], None]] = []

    # -- brokers -----------------------------------------------------------------------------------

    def image_of(self, node_id: int) -> MetadataImage:
        """A broker's metadata image; the newest one for an unknown broker."""
        broker = self.processes.get(node_id)
        return self.image if broker is None else broker.image

    def has_newest_image(self, node_id: int) -> bool:
        """Whether the broker exists and has the newest image."""
        broker = self.processes.get(node_id)
        return broker is not None and broker.image is self.image

    def is_running(self, node_id: int) -> bool:
        """Whether a broker's process exists and is not paused."""
        broker = self.processes.get(node_id)
        return broker is not None and broker.state == RUNNING

    def frozen_images(self) -> list[MetadataImage]:
        """The images that differ from the newest, each once."""
        if self.all_have_newest_image:
            return []
        newest = self.image
        found = {id(b.image): b.image for b in self.processes.values()}
        return [image for image in found.values() if image is not newest]

    # -- partitions --------------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition in the newest image, or None when the topic or the index is unknown."""
        return self.image.partition(topic, index)

    def partitions(self) -> Iterator[Partition]:
        """Every partition object of every image, each once."""
        newest = self.image
        yield from newest.partitions()
        seen: set[Partition] = set()
        for image in self.frozen_images():
            for partition in image.partitions():
                if newest.partition_by_id(*partition.key) is partition or partition in seen:
                    continue
                seen.add(partition)
                yield partition

    def objects_of(self, partition: Partition) -> list[Partition]:
        """The objects that the images have for one partition, each once."""
        if self.all_have_newest_image:
            return [partition]
        images = [self.image, *self.frozen_images()]
        found = [image.partition_by_id(*partition.key) for image in images]
        return list(dict.fromkeys(each for each in found if each is not None))

    def image_has(self, node_id: int, partition: Partition) -> bool:
        """Whether the broker's image has this object for the partition."""
        if self.all_have_newest_image:
            return not partition.deleted
        return self.image_of(node_id).partition_by_id(*partition.key) is partition

    def is_leader_object(self, partition: Partition) -> bool:
        """Whether the leader's image has this object for the partition."""
        leader_id = partition.leader_id
        return leader_id in self.processes and self.image_has(leader_id, partition)

    def leader_object(self, partition: Partition) -> Partition:
        """The leader's object of a partition, if the leader's image has it as the leader."""
        known = self.image_of(partition.leader_id).partition_by_id(*partition.key)
        return known if known and known.leader_id == partition.leader_id else partition

    def is_alive(self, partition: Partition, node_id: int) -> bool:
        """Whether a broker is registered and unfenced in the image of the partition's leader."""
        broker = self.image_of(partition.leader_id).brokers.get(node_id)
        return broker is not None and not broker.fenced

    def is_isr_eligible(self, partition: Partition, state: FollowerState) -> bool:
        """Whether, by the leader's image, the controller would accept a follower into the ISR: its
        broker is active (KIP-841) and has not restarted since it fetched (KIP-903).
        """
        image = self.image_of(partition.leader_id)
        if not image.is_active(state.node_id):
            return False
        broker = image.brokers[state.node_id]
        return state.broker_epoch in (UNKNOWN_EPOCH, broker.epoch) and broker.log_dirs.is_online(
            partition
        )

    # -- changing ----------------------------------------------------------------------------------

    def changed(self, topic: Topic | None = None) -> None:
        """Invalidate cached answers: a topic, leader, ISR, broker or endpoint has changed.

        With `topic`, only the answers about it.
        """
        self.image.epoch += 1
        self.image.memo.clear()
        if topic is not None:
            topic.touch()
            if self.recorder is not None:
                self.recorder.topic_changed(topic)
            return
        for every in self.image.topics.values():
            every.touch()

    def unshare(self, partition: Partition) -> Partition:
        """The newest image's object for a partition, separate from those of the frozen images.

        If the leader has a frozen image, it keeps the object and the newest image gets a copy.
        Otherwise the frozen images get copies.
        """
        newest = self.image
        if self.all_have_newest_image:
            return partition
        current = newest.partition_by_id(*partition.key)
        if current is None:
            return partition
        sharing = self.images_sharing(current)
        if not sharing:
            return current
        leader = self.processes.get(current.leader_id)
        if leader is None or all(leader.image is not image for image in sharing):
            for image in sharing:
                self.split_off(current, image)
            return current
        own = dict(current.own_replicas)
        own[leader.node_id] = Replica(leader.node_id, current.log, current.high_watermark)
        copy = current.copy_with(own)
        newest.put(copy)
        current.own_replicas = self._replicas_on(current, sharing)
        return copy

    def images_sharing(self, partition: Partition) -> list[MetadataImage]:
        """The frozen images that share this object."""
        key = partition.key
        return [image for image in self.frozen_images() if image.partition_by_id(*key) is partition]

    def split_off(self, partition: Partition, image: MetadataImage) -> None:
        """Give a frozen image an object of its own, with the replicas of its brokers."""
        image.put(partition.copy_with(self._replicas_on(partition, [image])))

    def _replicas_on(self, partition: Partition, images: list[MetadataImage]) -> dict[int, Replica]:
        """The replicas on the brokers that have one of these images."""
        processes = self.processes
        return {
            node_id: replica
            for node_id, replica in partition.own_replicas.items()
            if node_id in processes and any(processes[node_id].image is image for image in images)
        }
