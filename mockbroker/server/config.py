"""The config of a cluster: brokers, listeners, topics, configs. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.configs.defs import BROKER_CONFIGS, ConfigValue
from mockbroker.core.configs.differences import strict_configs
from mockbroker.core.configs.values import LISTENER_PREFIX, unknown_broker_config
from mockbroker.core.errors import ConfigError
from mockbroker.core.journal.journal import BYTES_MAX as JOURNAL_BYTES_MAX
from mockbroker.core.journal.reader_positions import Overflow
from mockbroker.core.validation import nearest

NODE_ID_MAX = 2**31 - 1
PORT_MAX = 65535
BROKERS_MAX = 1_000
PARTITIONS_MAX = 100_000
"""The most partitions of a topic that exists from the start. A client can create 10,000 at once."""
# Addresses to listen on, at which no client can connect.
META_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - they are refused
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class ServerError(Exception):
    """The cluster cannot be started; the message names the remedy."""


class StorageError(ServerError):
    """The data directory of a running cluster cannot be written. The cluster has ended."""


@dataclass(frozen=True)
class ListenerSpec:
    """One listener of every broker.

    Broker i (from 0) binds `host:port + i`, or a free port when `port` is 0. It advertises
    `advertised_host`, by default `host`, and `advertised_port + i`, by default the port that it
    binds. `configs` are the listener's own broker configs, as text:
    `ssl.client.auth`, `ssl.keystore.location`, `sasl.enabled.mechanisms`, … They outrank those of
    the cluster.
    """

    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    advertised_host: str | None = None
    advertised_port: int | None = None
    security_protocol: str = "PLAINTEXT"
    configs: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        if self.security_protocol not in SECURITY_PROTOCOLS:
            raise ServerError(
                f"listener {self.name}: {self.security_protocol!r} is no security protocol; "
                f"there are {', '.join(SECURITY_PROTOCOLS)}"
            )

    def of_broker(self, index: int) -> ListenerSpec:
        """The listener of broker `index`, counted from 0."""
        advertised = self.advertised_port
        return replace(
            self,
            port=self.port and self.port + index,
            advertised_port=None if advertised is None else advertised + index,
        )

    @property
    def config_prefix(self) -> str:
        """What the names of its own configs begin with among those of the cluster."""
        return f"{LISTENER_PREFIX}{self.name.lower()}."

    @property
    def is_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def is_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL")


@dataclass(frozen=True)
class SeedRecord:
    """One record of a seeded topic. Without a partition, the key decides, as with Java's
    producer.
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class TopicSpec:
    """A topic that exists from the start, with its first records."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    records: Sequence[SeedRecord] = ()


@dataclass(frozen=True)
class ServerConfig:
    """The whole config of a cluster.

    `configs` are Kafka's broker configs (`num.partitions`, `group.max.size`, …) as strings;
    `listener.name.NAME.…` is for one listener. `kafka_version` limits ApiVersions to the versions
    of that release ("2.8" … "4.3"). `strict` sets the configs by which the cluster differs from
    Kafka on purpose to Kafka's values (see `differences`); `configs` outrank these.

    `users` ({name: password}) authenticate by PLAIN and SCRAM. `security_directory` holds the files
    that clients of TLS listeners need; the default is a temporary directory.
    `allow_unsigned_tokens` accepts unsigned OAUTHBEARER tokens (`alg: none`).

    `data_dir` stores the cluster, which continues from there at the next start; with `sync` also
    after a crash of the machine. `load` is a directory to start with that is only read. `recover`
    drops the damaged end of either. `journal_bytes` limits the journal; 0 means none. When it is
    full of entries that a reader has not read, requests wait (`journal_overflow` "block"), or the
    reader finds a gap ("drop"). With `journal_hops` the journal also has the requests between
    brokers, which are then sent even where a call would do.
    """

    brokers: int = 3
    node_ids: Sequence[int] | None = None
    racks: Sequence[str | None] | None = None
    listeners: Sequence[ListenerSpec] = (ListenerSpec(),)
    topics: Sequence[TopicSpec] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    kafka_version: str = "4.3"
    strict: bool = False
    seed: int | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    security_directory: Path | None = None
    allow_unsigned_tokens: bool = False
    journal_bytes: int = JOURNAL_BYTES_MAX
    journal_overflow: Overflow = "drop"
    journal_hops: bool = False
    data_dir: Path | None = None
    sync: bool = False
    load: Path | None = None
    recover: bool = False

    def broker_configs(self) -> dict[str, str]:
        """The broker configs without those of single listeners."""
        given = {n: v for n, v in self.configs.items() if not n.startswith(LISTENER_PREFIX)}
        configs = {**(strict_configs() if self.strict else {}), **given}
        if any(listener.is_sasl for listener in self.listeners):
            # Kafka's default is GSSAPI, which needs a Kerberos server.
            configs.setdefault("sasl.enabled.mechanisms", ",".join(SASL_MECHANISMS))
        return configs

    def listener_configs(self, listener: ListenerSpec) -> dict[str, ConfigValue]:
        """The configs of `listener` alone, by the names of the broker configs. Raises ConfigError
        for a wrong one.
        """
        prefix = listener.config_prefix
        prefixed = {
            name.removeprefix(prefix): value
            for name, value in self.configs.items()
            if self._prefix_of(name) == prefix
        }
        return {
            name: _listener_config(prefix, name, text)
            for name, text in {**prefixed, **listener.configs}.items()
        }

    def _prefix_of(self, name: str) -> str | None:
        """The prefix of the listener that a config belongs to, if there is one. Names of listeners
        may have dots: beside a listener `a` the configs of `a.b` are not its own.
        """
        prefixes = (listener.config_prefix for listener in self.listeners)
        return max(filter(name.startswith, prefixes), key=len, default=None)

    def specs(self) -> list[BrokerSpec]:
        """The brokers. Raises ServerError for conflicting ids, racks or ports, or numbers that are
        too large.
        """
        count = self.brokers if self.node_ids is None else len(self.node_ids)
        if count > BROKERS_MAX:
            raise ServerError(f"a cluster has at most {BROKERS_MAX:,} brokers, not {count}")
        for topic in self.topics:
            if topic.partitions > PARTITIONS_MAX:
                raise ServerError(
                    f"topic {topic.name}: at most {PARTITIONS_MAX:,} partitions, "
                    f"not {topic.partitions}"
                )
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
        """Raises ServerError for two listeners with one name or port, and ConfigError for a wrong
        config of one.
        """
        self._check_listener_configs()
        names: dict[str, str] = {}
        taken: dict[tuple[str, int], str] = {}
        for listener in self.listeners:
            same = names.get(listener.config_prefix)
            if same is not None:
                hint = "" if same == listener.name else f" ({same} is the same name)"
                raise ServerError(f"two listeners are called {listener.name}{hint}")
            names[listener.config_prefix] = listener.name
            if (listener.advertised_host or listener.host) in META_ADDRESSES:
                raise ServerError(
                    f"listener {listener.name}: advertised.listeners cannot use the nonroutable "
                    f"meta-address {listener.advertised_host or listener.host}. Use a routable IP "
                    "address: --advertised-host HOST"
                )
            advertised = listener.advertised_port
            if (
                advertised is not None
                and not 1 <= advertised <= advertised + brokers - 1 <= PORT_MAX
            ):
                raise ServerError(
                    f"listener {listener.name}: {brokers} brokers cannot advertise ports from "
                    f"{advertised} on; there are 1..{PORT_MAX}"
                )
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

    def _check_listener_configs(self) -> None:
        """Raises ConfigError for a config of a listener that is wrong or has no listener."""
        for name in self.configs:
            if name.startswith(LISTENER_PREFIX) and self._prefix_of(name) is None:
                wanted = name.removeprefix(LISTENER_PREFIX).partition(".")[0]
                known = [listener.name.lower() for listener in self.listeners]
                raise ConfigError(name, f"there is no listener {wanted!r}{nearest(wanted, known)}")
        for listener in self.listeners:
            self.listener_configs(listener)


def _listener_config(prefix: str, name: str, text: str) -> ConfigValue:
    """The value of a config of one listener. Raises ConfigError."""
    # Kafka allows some for one mechanism: scram-sha-256.connections.max.reauth.ms.
    mechanism, dot, rest = name.partition(".")
    plain = rest if dot and mechanism.upper() in SASL_MECHANISMS else name
    definition = BROKER_CONFIGS.get(plain)
    if definition is None:
        raise ConfigError(prefix + name, unknown_broker_config(plain))
    try:
        return definition.parse(text)
    except ConfigError as error:
        raise ConfigError(prefix + name, error.reason) from None
