"""The topics of a metadata image, for groups whose coordinator assigns partitions.

A group compares the metadata at a heartbeat; `version` shows whether anything has changed. The
group epoch rises if the *metadata hash* of the subscribed topics has changed. The hash is in the
log, so it survives a move of the coordinator.

Source: CoordinatorMetadataImage, Utils.computeGroupHash. The hash function differs from Kafka's,
because only the coordinator compares hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.metadata.topic import Topic

HASH_BYTES = 8
NEVER = -1


class TopicInfo(NamedTuple):
    """One topic. `digest` is the hash of all that the metadata hash depends on."""

    topic_id: bytes
    name: str
    partitions: int
    digest: bytes


class TopicSource(Protocol):
    """The topics of a metadata image."""

    @property
    def version(self) -> int:
        """Rises with each change of a topic."""
        ...

    @property
    def created_version(self) -> int:
        """The version at which the newest topic was first seen."""
        ...

    def by_name(self, name: str) -> TopicInfo | None: ...

    def by_id(self, topic_id: bytes) -> TopicInfo | None: ...

    def has(self, topic_id: bytes) -> bool:
        """Whether there is the topic, without a look at its partitions."""
        ...

    def names(self) -> Iterable[str]: ...


def metadata_hash(source: TopicSource, names: Iterable[str]) -> int:
    """The hash of the existing topics in `names`, a signed 64-bit integer; 0 without a topic."""
    hasher = None
    for name in sorted(names):
        info = source.by_name(name)
        if info is not None:
            hasher = blake2b(digest_size=HASH_BYTES) if hasher is None else hasher
            hasher.update(info.digest)
    return int.from_bytes(hasher.digest(), "big", signed=True) if hasher else 0


class ImageHolder(Protocol):
    """A broker or a cluster: an object with a metadata image."""

    @property
    def image(self) -> MetadataImage: ...


class ClusterTopics:
    """The topics of the current image of `holder`."""

    __slots__ = ("_created_version", "_holder", "_infos", "_known", "_known_version", "_version")

    def __init__(self, holder: ImageHolder) -> None:
        self._holder = holder
        self._infos: dict[str, TopicInfo] = {}
        self._version = NEVER
        # The topic ids at the last call, and the version of that image.
        self._known: set[bytes] = set()
        self._known_version = NEVER
        self._created_version = NEVER

    @property
    def version(self) -> int:
        return self._holder.image.epoch

    @property
    def created_version(self) -> int:
        self._update_known_topics()
        return self._created_version

    def names(self) -> Iterable[str]:
        self._update_known_topics()
        return self._holder.image.topics

    def _update_known_topics(self) -> None:
        version = self.version
        if version != self._known_version:
            present = set(self._holder.image.topics_by_id)
            if not present <= self._known:
                self._created_version = version
            self._known = present
            self._known_version = version

    def by_name(self, name: str) -> TopicInfo | None:
        topic = self._holder.image.topics.get(name)
        return None if topic is None else self._info(topic)

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        topic = self._holder.image.topics_by_id.get(topic_id)
        return None if topic is None else self._info(topic)

    def has(self, topic_id: bytes) -> bool:
        return topic_id in self._holder.image.topics_by_id

    def _info(self, topic: Topic) -> TopicInfo:
        if self._version != self.version:
            self._infos.clear()
            self._version = self.version
        info = self._infos.get(topic.name)
        if info is None:
            info = self._infos[topic.name] = self._describe(topic)
        return info

    def _describe(self, topic: Topic) -> TopicInfo:
        """The digest includes racks, because an assignor may use them (KIP-881)."""
        hasher = blake2b(digest_size=HASH_BYTES)
        hasher.update(topic.topic_id)
        hasher.update(topic.name.encode())
        brokers = self._holder.image.brokers
        for partition in topic.partitions:
            racks = sorted(
                brokers[node_id].rack or "" for node_id in partition.replicas if node_id in brokers
            )
            hasher.update(f"{partition.index}:{racks}".encode())
        return TopicInfo(topic.topic_id, topic.name, len(topic.partitions), hasher.digest())
