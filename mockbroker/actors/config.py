"""What a cluster is started from: brokers, listeners, topics, configs. Plain data, checked when
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mockbroker.core.broker import BrokerSpec

NODE_ID_MAX = 2**31 - 1


class ServerError(Exception):
    """The cluster cannot be started as asked; the message says what to change."""


@dataclass(frozen=True)
class ListenerSpec:
    """One listener of every broker.

    Broker i (from 0) binds `host:port + i`, or a free port when `port` is 0, and tells clients to
    come to `advertised_host`, which defaults to `host`.
    """

    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    advertised_host: str | None = None


@dataclass(frozen=True)
class SeedRecord:
    """One record of a seeded topic. Without a partition, keys are placed by murmur2 as Java
    does.
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class TopicSpec:
    """A topic that exists from the start; `records` are (key, value) pairs to seed it with."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    records: Sequence[SeedRecord] = ()


@dataclass(frozen=True)
class ServerConfig:
    """Everything a cluster is started from.

    `configs` are broker configs as Kafka names them (`num.partitions`, `group.max.size`, …), as
    strings. `kafka_version` caps what ApiVersions offers at that release ("2.8" … "4.3").
    """

    brokers: int = 3
    node_ids: Sequence[int] | None = None
    racks: Sequence[str | None] | None = None
    listeners: Sequence[ListenerSpec] = (ListenerSpec(),)
    topics: Sequence[TopicSpec] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    kafka_version: str = "4.3"
    seed: int | None = None

    def specs(self) -> list[BrokerSpec]:
        """The brokers to make. Raises ServerError on ids or racks that do not fit."""
        ids = list(self.node_ids) if self.node_ids is not None else list(range(1, self.brokers + 1))
        if not ids:
            raise ServerError("a cluster needs at least one broker")
        if len(set(ids)) != len(ids):
            raise ServerError(f"node ids must differ: {','.join(map(str, ids))}")
        for node_id in ids:
            if not 0 <= node_id <= NODE_ID_MAX:
                raise ServerError(f"node id {node_id} is outside 0..{NODE_ID_MAX}")
        racks = list(self.racks) if self.racks is not None else [None] * len(ids)
        if len(racks) != len(ids):
            raise ServerError(f"{len(racks)} racks for {len(ids)} brokers")
        return [BrokerSpec(node_id, rack) for node_id, rack in zip(ids, racks, strict=True)]
