"""The configs in force: overrides in layers over the defaults, resolved to typed values.

A broker config is looked up, as Kafka does, in the broker's own dynamic configs, then in the
dynamic defaults of the cluster, then in the static ones (server.properties), then in the table of
defaults. A topic config is looked up in the topic's overrides and then in the broker configs behind
it. Overrides are kept as text, as they came, because that is what describes show; typed values are
cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from mockbroker.core.configs.defs import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    ConfigValue,
)
from mockbroker.core.configs.differences import INITIAL_REBALANCE
from mockbroker.core.errors import ConfigError
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.security.authorizer import CONFIGS as AUTHORIZER_CONFIGS

MS_PER_UNIT = {"minutes": 60_000, "hours": 3_600_000}

# Kafka's replication factors of internal topics; a smaller cluster takes as many as it has brokers.
_INTERNAL_FACTORS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)

# What the cluster decides by itself; the command line has flags of its own for these.
STRUCTURAL = frozenset(
    (
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "node.id",
        "process.roles",
    )
)


class ConfigSource(IntEnum):
    """Where a value comes from, by its code in DescribeConfigs responses."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """One place where a config has a value, with its text."""

    name: str
    value: str | None
    source: ConfigSource


def check_static(overrides: Mapping[str, str]) -> dict[str, str]:
    """Check broker configs given at start; ConfigError names the first bad key and why it is
    refused.
    """
    for key, text in overrides.items():
        definition = BROKER_CONFIGS.get(key)
        if definition is None:
            if key in AUTHORIZER_CONFIGS:
                continue  # handed on to the authorizer as it is
            if key in TOPIC_SYNONYMS:
                hint = f"a topic config; for its default set {TOPIC_SYNONYMS[key][0]}"
                raise ConfigError(key, hint)
            raise ConfigError(key, "no broker config of Kafka 4.3 has this name")
        if key in STRUCTURAL:
            raise ConfigError(key, "decided by the cluster itself, not by a config")
        definition.parse(text)
    return dict(overrides)


def static_configs(overrides: Mapping[str, str], brokers: int) -> dict[str, str]:
    """The static configs of a cluster of so many brokers: what was asked for, over what fits tests.

    Each is a visible broker config (source STATIC_BROKER_CONFIG), as if server.properties had it.
    """
    static = {INITIAL_REBALANCE: "0"}
    for name in _INTERNAL_FACTORS:
        kafka_default = BROKER_CONFIGS[name].default
        if kafka_default is not None and brokers < int(kafka_default):
            static[name] = str(brokers)
    static.update(check_static(overrides))
    return static


def family_of(name: str) -> tuple[str, ...]:
    """The broker configs that stand for the same thing in different units, the strongest first."""
    return _FAMILIES.get(name, (name,))


_FAMILIES = {
    member: family for family in TOPIC_SYNONYMS.values() if len(family) > 1 for member in family
}


class ClusterConfigs:
    """Broker, group and client-metrics configs of a cluster. `version` grows with every change."""

    __slots__ = (
        "_values",
        "client_metrics",
        "dynamic_broker",
        "dynamic_default",
        "groups",
        "static",
        "version",
    )

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static: dict[str, str] = dict(static)
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[int, dict[str, str]] = {}
        self.groups: dict[str, dict[str, str]] = {}
        self.client_metrics: dict[str, dict[str, str]] = {}
        self.version = 0
        self._values: dict[str, ConfigValue] = {}

    def changed(self) -> None:
        """Call after an edit of any layer: forgets the resolved values."""
        self._values.clear()
        self.version += 1

    def get(self, name: str) -> ConfigValue:
        """The typed value of a broker config as the cluster as a whole sees it; KeyError if
        unknown.
        """
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._resolve(name, None)
            return value

    def get_int(self, name: str) -> int:
        """The value of a broker config that is an integer, as `get` has it."""
        value = self.get(name)
        assert isinstance(value, int)
        return value

    def get_for(self, node_id: int, name: str) -> ConfigValue:
        """The typed value of a broker config on one broker."""
        own = self.dynamic_broker.get(node_id)
        return self._resolve(name, node_id) if own and name in own else self.get(name)

    def _resolve(self, name: str, node_id: int | None) -> ConfigValue:
        definition = BROKER_CONFIGS[name]
        for synonym in self.layers(name, node_id):
            if synonym.source is not ConfigSource.DEFAULT and synonym.value is not None:
                return definition.parse(synonym.value)
        return definition.default_value()

    def layers(self, name: str, node_id: int | None) -> Iterator[Synonym]:
        """Every place where broker config `name` itself has a value, the strongest first."""
        if node_id is not None:
            text = self.dynamic_broker.get(node_id, {}).get(name)
            if text is not None:
                yield Synonym(name, text, ConfigSource.DYNAMIC_BROKER)
        text = self.dynamic_default.get(name)
        if text is not None:
            yield Synonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER)
        text = self.static.get(name)
        if text is not None:
            yield Synonym(name, text, ConfigSource.STATIC_BROKER)
        definition = BROKER_CONFIGS.get(name)
        if definition is not None and definition.default is not None:
            yield Synonym(name, definition.default, ConfigSource.DEFAULT)

    def topic_default(self, name: str, node_id: int | None = None) -> ConfigValue:
        """The value a topic config takes when the topic has no override of its own.

        Logs follow the cluster's value; that of a single broker (`node_id`) is for describing only.
        """
        for synonym in TOPIC_SYNONYMS.get(name, ()):
            value = self.get(synonym) if node_id is None else self.get_for(node_id, synonym)
            if value is None:
                continue
            unit = MS_PER_UNIT.get(synonym.rpartition(".")[2])
            if unit is not None and isinstance(value, int):
                value = value * unit
            if name == "retention.ms" and isinstance(value, int) and value < 0:
                return -1
            return value
        return TOPIC_CONFIGS[name].default_value()

    def group_value(self, group_id: str, name: str) -> ConfigValue:
        """The typed value of a group config: the group's own, else the broker config behind it."""
        definition = GROUP_CONFIGS[name]
        text = self.groups.get(group_id, {}).get(name)
        if text is not None:
            return definition.parse(text)
        synonym = GROUP_SYNONYMS.get(name)
        return definition.default_value() if synonym is None else self.get(synonym)


class TopicConfigs:
    """The configs in force for one topic, typed, as attributes (dots become underscores).

    Every topic config is one. Those that are read in the code are declared here, with their types.
    Holders may keep the object: a change of the topic's or the brokers' configs is seen in place.
    """

    cleanup_policy: tuple[str, ...]
    compression_type: str
    delete_retention_ms: int
    flush_messages: int
    index_interval_bytes: int
    internal_segment_bytes: int | None
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_ms: int
    unclean_leader_election_enable: bool
    compacted: bool  # cleanup.policy contains compact
    deleting: bool  # cleanup.policy contains delete
    log_append_time: bool  # message.timestamp.type is LogAppendTime
    roll_limits: RollLimits  # when a segment is full or too old

    def __init__(self, cluster_configs: ClusterConfigs, overrides: Mapping[str, str]) -> None:
        self.overrides: dict[str, str] = {}
        self._cluster_configs = cluster_configs
        self.replace(overrides)

    def replace(self, overrides: Mapping[str, str]) -> None:
        """Take `overrides` (already validated) in place of the present ones and resolve anew."""
        self.overrides = dict(overrides)
        self.resolve()

    def resolve(self) -> None:
        """Compute the attributes again, after a change of the brokers' configs."""
        defaults = self._cluster_configs
        for name, definition in TOPIC_CONFIGS.items():
            text = self.overrides.get(name)
            value = defaults.topic_default(name) if text is None else definition.parse(text)
            setattr(self, name.replace(".", "_"), value)
        self.compacted = "compact" in self.cleanup_policy
        self.deleting = "delete" in self.cleanup_policy
        self.roll_limits = self._roll_limits()
        self.log_append_time = self.message_timestamp_type == "LogAppendTime"

    def _roll_limits(self) -> RollLimits:
        """As LogConfig.segmentSize and maxSegmentMs have them."""
        segment_bytes, segment_ms = self.internal_segment_bytes, self.segment_ms
        if self.compacted and self.max_compaction_lag_ms > 0:
            # What has to be compacted by then must have left the active segment (KIP-354).
            segment_ms = min(segment_ms, self.max_compaction_lag_ms)
        return RollLimits(
            self.segment_bytes if segment_bytes is None else segment_bytes,
            segment_ms,
            self.segment_index_bytes,
            self.index_interval_bytes,
        )
