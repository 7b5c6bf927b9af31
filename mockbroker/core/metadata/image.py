"""The metadata image: topics, brokers and the controller, as of one point of the controller's log.

All brokers that reach the controller share the newest image, which the controller changes in place.
A broker that loses the controller keeps a *frozen* copy from that moment, which nothing changes any
more. It goes on by that image: it leads the same partitions, follows its former leaders, and
answers Metadata with brokers and leaders that may be out of date.

`epoch` grows with every change, so that caches detect stale answers. `memo` holds answers derived
from the image as a whole; a change drops them.

Source: MetadataImage, MetadataCache.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from mockbroker.core.log.dirs import LogDirs
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition


class Endpoint(NamedTuple):
    """The advertised address of a broker."""

    host: str
    port: int


class BrokerRegistration(Protocol):
    """A broker in an image (BrokerRegistration)."""

    @property
    def node_id(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def fenced(self) -> bool: ...
    @property
    def shutting_down(self) -> bool: ...
    @property
    def endpoints(self) -> Mapping[str, Endpoint]: ...
    @property
    def log_dirs(self) -> LogDirs: ...


class FrozenBrokerRegistration(NamedTuple):
    """A broker's registration as it was when an image was frozen."""

    node_id: int
    rack: str | None
    epoch: int
    fenced: bool
    shutting_down: bool
    endpoints: Mapping[str, Endpoint]
    log_dirs: LogDirs


class MetadataImage:
    """Topics by name and by id, registrations by node id, and the controller's node id."""

    __slots__ = ("brokers", "controller_id", "epoch", "memo", "topics", "topics_by_id")

    def __init__(
        self,
        topics: dict[str, Topic],
        brokers: Mapping[int, BrokerRegistration],
        controller_id: int,
        epoch: int = 0,
    ) -> None:
        self.topics = topics
        self.topics_by_id = {topic.topic_id: topic for topic in topics.values()}
        self.brokers = brokers
        self.controller_id = controller_id
        self.epoch = epoch
        self.memo: dict[object, object] = {}

    def frozen(self) -> MetadataImage:
        """A copy of the image that the controller will not change."""
        return MetadataImage(
            {name: topic.frozen() for name, topic in self.topics.items()},
            {
                node_id: FrozenBrokerRegistration(
                    node_id,
                    broker.rack,
                    broker.epoch,
                    broker.fenced,
                    broker.shutting_down,
                    dict(broker.endpoints),
                    broker.log_dirs,
                )
                for node_id, broker in self.brokers.items()
            },
            self.controller_id,
            self.epoch,
        )

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition, or None when the topic or the index is unknown."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """The partition, or None when the topic id or the index is unknown."""
        found = self.topics_by_id.get(topic_id)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def partitions(self) -> Iterator[Partition]:
        """Every partition. The image may change meanwhile."""
        for topic in list(self.topics.values()):
            yield from list(topic.partitions)

    def put(self, partition: Partition) -> None:
        """Make `partition` the image's object for its topic and index."""
        topic = self.topics_by_id[partition.topic.topic_id]
        topic.partitions[partition.index] = partition

    def is_active(self, node_id: int) -> bool:
        """Whether a broker may lead and be in sync: registered, unfenced, not shutting down."""
        broker = self.brokers.get(node_id)
        return broker is not None and not broker.fenced and not broker.shutting_down

    def reachable_brokers(self, listener: str) -> dict[int, Endpoint]:
        """The unfenced brokers that have this listener, with their addresses on it."""
        key = ("reachable brokers", listener)
        known = self.memo.get(key)
        if not isinstance(known, dict):
            known = {
                node_id: broker.endpoints[listener]
                for node_id, broker in self.brokers.items()
                if not broker.fenced and listener in broker.endpoints
            }
            self.memo[key] = known
        return known

    def offline_replicas(self, partition: Partition, reachable: Container[int]) -> list[int]:
        """The replicas on brokers outside `reachable`, or in an offline directory."""
        brokers = self.brokers
        return [
            node_id
            for node_id in partition.replicas
            if node_id not in reachable or not brokers[node_id].log_dirs.is_online(partition)
        ]
