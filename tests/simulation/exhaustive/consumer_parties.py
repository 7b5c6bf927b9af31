"""The clients and topics of a consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from mockbroker.core.groups.modern.events import JOIN_EPOCH
from mockbroker.core.groups.modern.topics import TopicInfo

SUBSCRIPTIONS = (frozenset("t"), frozenset("tu"), frozenset("u"))

Partitions: TypeAlias = "frozenset[tuple[bytes, int]]"
NOTHING: Partitions = frozenset()


class Topics:
    """The topics of the cluster: a `TopicSource`."""

    __slots__ = ("created_version", "infos", "version")

    def __init__(self) -> None:
        self.version = self.created_version = 0
        self.infos: dict[str, TopicInfo] = {}
        self.create("t", 2)

    def create(self, name: str, partitions: int) -> None:
        self.version += 1
        self.created_version = self.version
        self.infos[name] = TopicInfo(name.encode() * 16, name, partitions, name.encode())

    def by_name(self, name: str) -> TopicInfo | None:
        return self.infos.get(name)

    def has(self, topic_id: bytes) -> bool:
        return self.by_id(topic_id) is not None

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return self.infos.get(topic_id[:1].decode())

    def names(self) -> Iterable[str]:
        return self.infos

    def partitions(self, names: Iterable[str]) -> Partitions:
        """The partitions of those topics that exist."""
        infos = [self.infos[name] for name in names if name in self.infos]
        return frozenset((info.topic_id, p) for info in infos for p in range(info.partitions))


class ConsumerGroupClient:
    """One client. `assigned` is its last assignment, `owned` its current partitions."""

    __slots__ = (
        "assigned",
        "epoch",
        "instance_id",
        "lives",
        "name",
        "owned",
        "rebalance_timeout_ms",
        "topics",
        "unsure",
    )

    def __init__(self, name: str, instance_id: str | None, rebalance_timeout_ms: int) -> None:
        self.name = name
        self.instance_id = instance_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.lives = 1
        self.topics = SUBSCRIPTIONS[0]
        self.forget()

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.lives}"

    def forget(self) -> None:
        """Reset the client: it is no member and owns nothing."""
        self.epoch = JOIN_EPOCH
        self.unsure = False  # an answer was lost: its next heartbeat is a full one
        self.assigned = self.owned = NOTHING


def flat(owned: Mapping[bytes, Iterable[int]]) -> Partitions:
    return frozenset((topic_id, p) for topic_id, ps in owned.items() for p in ps)


def by_topic(partitions: Partitions) -> dict[bytes, tuple[int, ...]]:
    found: dict[bytes, tuple[int, ...]] = {}
    for topic_id, partition in sorted(partitions):
        found[topic_id] = (*found.get(topic_id, ()), partition)
    return found
