"""`serve --config-file F.toml`: a cluster described in a file, checked field by field.

brokers = 3
kafka_version = "4.3"

[configs]
"group.max.size" = 5

[[listeners]]
name = "PLAINTEXT"
port = 9092

[[listeners]]
name = "SECURE"
security_protocol = "SASL_SSL"
port = 9192
configs = { "ssl.client.auth" = "requested" }

[users]
alice = "alice-secret"

[[topics]]
name = "orders"
partitions = 4
replication_factor = 3
configs = { "cleanup.policy" = "compact" }
records = [{ key = "a", value = "1" }, { value = "2", partition = 3 }]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from mockbroker.core.configs.texts import GivenConfig, config_texts
from mockbroker.server.config import ListenerSpec, SeedRecord, ServerConfig, ServerError, TopicSpec

FILL_MAX = 1_000_000
"""The most records that a topic is filled with."""


class RecordEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A seeded record; text is stored as UTF-8, a missing value as null (a tombstone)."""

    value: str | None = None
    key: str | None = None
    partition: int | None = None
    headers: dict[str, str] = {}
    timestamp_ms: int | None = None


class TopicEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A topic that exists from the start.

    `fill` is the number of records generated in each partition, with their offsets as keys and
    values; `records` follow them.
    """

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: dict[str, GivenConfig] = {}
    fill: list[int] = []
    records: list[RecordEntry] = []


class ListenerEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One listener of every broker; broker i binds port + i and advertises advertised_port + i.
    `configs` are for it alone.
    """

    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    advertised_host: str | None = None
    advertised_port: int | None = None
    security_protocol: str = "PLAINTEXT"
    configs: dict[str, GivenConfig] = {}


class ConfigFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    brokers: int | None = None
    node_ids: list[int] | None = None
    racks: list[str] | None = None
    kafka_version: str | None = None
    strict: bool = False
    seed: int | None = None
    configs: dict[str, GivenConfig] = {}
    listeners: list[ListenerEntry] = []
    users: dict[str, str] = {}
    security_dir: str | None = None
    allow_unsigned_tokens: bool = False
    data_dir: str | None = None
    sync: bool = False
    topics: list[TopicEntry] = []


def load(path: Path) -> ConfigFile:
    """Read a config file. Raises ServerError that names the file and the field."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=ConfigFile)
    except OSError as error:
        raise ServerError(f"cannot read {path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise ServerError(f"{path}: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ServerError(f"{path} is not valid TOML: {error}") from None


def topic_spec(entry: TopicEntry) -> TopicSpec:
    """The topic of one `[[topics]]` table."""
    return TopicSpec(
        entry.name,
        entry.partitions,
        entry.replication_factor,
        config_texts(entry.configs),
        [*_filling(entry), *(_seed_record(record) for record in entry.records)],
    )


def _filling(entry: TopicEntry) -> Iterator[SeedRecord]:
    if len(entry.fill) > max(entry.partitions, 0) or any(count < 0 for count in entry.fill):
        raise ServerError(
            f"topic {entry.name}: fill is a number of records for each of {entry.partitions} "
            f"partitions, not {entry.fill}"
        )
    records = sum(entry.fill)
    if records > FILL_MAX:
        raise ServerError(
            f"topic {entry.name}: fill has at most {FILL_MAX:,} records in all, not {records}"
        )
    for partition, count in enumerate(entry.fill):
        for offset in range(count):
            text = str(offset).encode()
            yield SeedRecord(value=text, key=text, partition=partition)


def _seed_record(entry: RecordEntry) -> SeedRecord:
    return SeedRecord(
        value=None if entry.value is None else entry.value.encode(),
        key=None if entry.key is None else entry.key.encode(),
        partition=entry.partition,
        headers=[(name, value.encode()) for name, value in entry.headers.items()],
        timestamp_ms=entry.timestamp_ms,
    )


def server_config(file: ConfigFile) -> ServerConfig:
    """The config that the file describes; missing fields have the command line's defaults.

    Raises ServerError where two fields contradict each other.
    """
    if file.node_ids is not None and file.brokers not in (None, len(file.node_ids)):
        raise ServerError(f"brokers = {file.brokers}, but node_ids names {len(file.node_ids)}")
    return ServerConfig(
        brokers=file.brokers if file.brokers is not None else 3,
        node_ids=file.node_ids,
        racks=file.racks,
        listeners=tuple(
            ListenerSpec(
                entry.name,
                entry.host,
                entry.port,
                entry.advertised_host,
                entry.advertised_port,
                entry.security_protocol,
                config_texts(entry.configs),
            )
            for entry in file.listeners
        ),
        topics=[topic_spec(entry) for entry in file.topics],
        configs=config_texts(file.configs),
        kafka_version=file.kafka_version or "4.3",
        strict=file.strict,
        seed=file.seed,
        users=file.users,
        security_directory=None if file.security_dir is None else Path(file.security_dir),
        allow_unsigned_tokens=file.allow_unsigned_tokens,
        data_dir=None if file.data_dir is None else Path(file.data_dir),
        sync=file.sync,
    )
