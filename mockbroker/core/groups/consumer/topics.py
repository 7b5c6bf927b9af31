"""Topics as a consumer group sees them: names, ids, how many partitions, and when that changed.

A group compares the metadata at a member's heartbeat, not when it changes: `version` is a cheap
check for changes. The *metadata hash* of what a group subscribes to is
what decides whether the group epoch rises; it stands in the log, so it survives a move of the
coordinator.

Source: CoordinatorMetadataImage, and Utils.computeGroupHash, whose hash function is another one:
nobody but the coordinator that wrote a hash compares it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from mockbroker.core.metadata.image import Image
    from mockbroker.core.metadata.topic import Topic

HASH_BYTES = 8
NEVER = -1


class TopicInfo(NamedTuple):
    """What a group needs to know of a topic. `digest` stands for all that may matter to it."""

    topic_id: bytes
    name: str
    partitions: int
    digest: bytes


class TopicSource(Protocol):
    """The topics of a metadata image."""

    @property
    def version(self) -> int:
        """Grows whenever anything about any topic may have changed."""
        ...

    @property
    def created_version(self) -> int:
        """The version as of which somebody first saw the newest topic."""
        ...

    def by_name(self, name: str) -> TopicInfo | None: ...

    def by_id(self, topic_id: bytes) -> TopicInfo | None: ...

    def names(self) -> Iterable[str]: ...


def metadata_hash(source: TopicSource, names: Iterable[str]) -> int:
    """The hash, as a signed 64-bit integer, of those topics among `names` that exist; 0 of none."""
    hasher = None
    for name in sorted(names):
        info = source.by_name(name)
        if info is not None:
            hasher = blake2b(digest_size=HASH_BYTES) if hasher is None else hasher
            hasher.update(info.digest)
    return int.from_bytes(hasher.digest(), "big", signed=True) if hasher else 0


class ImageHolder(Protocol):
    """A broker, or the cluster: whoever has a metadata image."""

    @property
    def image(self) -> Image: ...


class ClusterTopics:
    """The topics of the image that `holder` has just now."""

    __slots__ = ("_created_version", "_holder", "_infos", "_known", "_known_version", "_version")

    def __init__(self, holder: ImageHolder) -> None:
        self._holder = holder
        self._infos: dict[str, TopicInfo] = {}
        self._version = NEVER
        # The topics that were there when somebody last asked, and what version that was.
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

    def _info(self, topic: Topic) -> TopicInfo:
        if self._version != self.version:
            self._infos.clear()
            self._version = self.version
        info = self._infos.get(topic.name)
        if info is None:
            info = self._infos[topic.name] = self._describe(topic)
        return info

    def _describe(self, topic: Topic) -> TopicInfo:
        """Racks are part of it: an assignor might go by them (KIP-881)."""
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
