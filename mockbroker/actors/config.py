"""What a cluster is started from: brokers, listeners, topics, configs. Plain data, checked when
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mockbroker.core.broker import BrokerSpec
from mockbroker.core.journal.following import Overflow
from mockbroker.core.journal.journal import BYTES_MAX as JOURNAL_BYTES_MAX

NODE_ID_MAX = 2**31 - 1
PORT_MAX = 65535
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LISTENER_PREFIX = "listener.name."


class ServerError(Exception):
    """The cluster cannot be started as asked; the message says what to change."""


@dataclass(frozen=True)
class ListenerSpec:
    """One listener of every broker.

    Broker i (from 0) binds `host:port + i`, or a free port when `port` is 0, and tells clients to
    come to `advertised_host`, which defaults to `host`. `configs` are the broker configs that
    Kafka lets a listener have for itself, as text: `ssl.client.auth`, `ssl.keystore.location`,
    `sasl.enabled.mechanisms`, … They outrank those of the cluster.
    """

    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    advertised_host: str | None = None
    security_protocol: str = "PLAINTEXT"
    configs: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        if self.security_protocol not in SECURITY_PROTOCOLS:
            raise ServerError(
                f"listener {self.name}: {self.security_protocol!r} is no security protocol; "
                f"there are {', '.join(SECURITY_PROTOCOLS)}"
            )

    @property
    def is_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def is_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL")


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
    strings; `listener.name.NAME.…` is for one listener. `kafka_version` caps what ApiVersions
    offers at that release ("2.8" … "4.3").

    `users` ({name: password}) may log in by PLAIN and SCRAM. `security_directory` is where the
    files go that clients of TLS listeners need; without one it is a temporary directory.
    `allow_unsigned_tokens` lets OAUTHBEARER clients in with unsigned tokens (`alg: none`).

    `data_dir` is where the cluster is kept up to date, so that it goes on from there when it is
    started again; with `sync` that holds for a crash of the machine as well. `load` is a directory
    to begin with that is only read. `recover` keeps what is before the damage in either.
    `journal_bytes` bounds the journal of what happened; 0 keeps none. When it is full of what a
    reader that follows has not read yet, requests wait (`journal_overflow` "block"), or the reader
    finds a gap ("drop").
    """

    brokers: int = 3
    node_ids: Sequence[int] | None = None
    racks: Sequence[str | None] | None = None
    listeners: Sequence[ListenerSpec] = (ListenerSpec(),)
    topics: Sequence[TopicSpec] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    kafka_version: str = "4.3"
    seed: int | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    security_directory: Path | None = None
    allow_unsigned_tokens: bool = False
    journal_bytes: int = JOURNAL_BYTES_MAX
    journal_overflow: Overflow = "drop"
    data_dir: Path | None = None
    sync: bool = False
    load: Path | None = None
    recover: bool = False

    def broker_configs(self) -> dict[str, str]:
        """The configs of the brokers themselves, without those of single listeners."""
        configs = {n: v for n, v in self.configs.items() if not n.startswith(_LISTENER_PREFIX)}
        if any(listener.is_sasl for listener in self.listeners):
            # Kafka's default is GSSAPI, which nobody can use without a Kerberos of their own.
            configs.setdefault("sasl.enabled.mechanisms", ",".join(SASL_MECHANISMS))
        return configs

    def listener_configs(self, listener: ListenerSpec) -> dict[str, str]:
        """What `listener` has for itself, by the names of the broker configs."""
        prefix = f"{_LISTENER_PREFIX}{listener.name.lower()}."
        prefixed = {
            name.removeprefix(prefix): value
            for name, value in self.configs.items()
            if name.startswith(prefix)
        }
        return {**prefixed, **listener.configs}

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
        self._check_listeners(len(ids))
        return [BrokerSpec(node_id, rack) for node_id, rack in zip(ids, racks, strict=True)]

    def _check_listeners(self, brokers: int) -> None:
        """Raises ServerError where two listeners have one name, or ports do not fit."""
        names: set[str] = set()
        taken: dict[tuple[str, int], str] = {}
        for listener in self.listeners:
            if listener.name in names:
                raise ServerError(f"two listeners are called {listener.name}")
            names.add(listener.name)
            last = listener.port + brokers - 1
            if listener.port and not 1 <= listener.port <= last <= PORT_MAX:
                raise ServerError(
                    f"listener {listener.name}: {brokers} brokers from port {listener.port} on take"
                    f" ports up to {last}; there are 1..{PORT_MAX}"
                )
            for port in range(listener.port, listener.port + brokers) if listener.port else ():
                other = taken.setdefault((listener.host, port), listener.name)
                if other != listener.name:
                    raise ServerError(
                        f"listeners {other} and {listener.name} both want port {port}: each takes"
                        f" {brokers} ports in a row, one for each broker"
                    )
