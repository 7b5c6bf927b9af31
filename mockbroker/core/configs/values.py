"""The configs of a cluster: layers of overrides over the defaults, resolved to typed values.

As in Kafka, a broker config is looked up in the broker's dynamic configs, then in the cluster's
dynamic defaults, then in the static configs (server.properties), then in the table of defaults. A
topic config is looked up in the topic's overrides and then in its broker configs. Overrides are
kept as text for DescribeConfigs; typed values are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from mockbroker.core.configs.differences import INITIAL_REBALANCE, STREAMS_INITIAL_REBALANCE
from mockbroker.core.errors import ConfigError
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.security.authorizer import CONFIGS as AUTHORIZER_CONFIGS
from mockbroker.core.validation import nearest

LISTENER_PREFIX = "listener.name."
"""`listener.name.NAME.CONFIG` is the config of one listener; its name is in small letters."""

MS_PER_UNIT = {"minutes": 60_000, "hours": 3_600_000}

# The replication factors of internal topics; in a smaller cluster they are the broker count.
_INTERNAL_FACTORS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)

# The cluster sets these itself; the command line has flags for them.
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
    """The source of a value, by its code in DescribeConfigs responses."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """One source with a value of a config, as text."""

    name: str
    value: str | None
    source: ConfigSource


def unknown_broker_config(name: str) -> str:
    """Why `name` is refused, with the nearest name of Kafka's broker configs and our own."""
    return f"no broker config has this name{nearest(name, BROKER_CONFIGS, listed=False)}"


def check_static(overrides: Mapping[str, str]) -> dict[str, str]:
    """Check the broker configs of a start. Raises ConfigError for the first invalid key."""
    for key, text in overrides.items():
        definition = BROKER_CONFIGS.get(key)
        if definition is None:
            if key in AUTHORIZER_CONFIGS:
                continue  # for the authorizer
            if key in TOPIC_SYNONYMS:
                hint = f"a topic config; for its default set {TOPIC_SYNONYMS[key][0]}"
                raise ConfigError(key, hint)
            raise ConfigError(key, unknown_broker_config(key))
        if key in STRUCTURAL:
            raise ConfigError(key, "set by the cluster itself, not by a config")
        definition.parse(text)
    return dict(overrides)


def static_configs(overrides: Mapping[str, str], brokers: int) -> dict[str, str]:
    """The static configs of a cluster of so many brokers: `overrides` over defaults for tests.

    Each is a broker config with source STATIC_BROKER_CONFIG, as if server.properties had it.
    """
    static = {INITIAL_REBALANCE: "0", STREAMS_INITIAL_REBALANCE: "0"}
    for name in _INTERNAL_FACTORS:
        kafka_default = BROKER_CONFIGS[name].default
        if kafka_default is not None and brokers < int(kafka_default):
            static[name] = str(brokers)
    static.update(check_static(overrides))
    return static


def family_of(name: str) -> tuple[str, ...]:
    """The broker configs for the same value in different units, by precedence."""
    return _FAMILIES.get(name, (name,))


_FAMILIES = {
    member: family for family in TOPIC_SYNONYMS.values() if len(family) > 1 for member in family
}


class ClusterConfigs:
    """Broker, group and client-metrics configs of a cluster. `version` rises with each change."""

    __slots__ = (
        "_topic_attributes",
        "_values",
        "client_metrics",
        "dynamic_broker",
        "dynamic_default",
        "groups",
        "on_changed",
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
        self._topic_attributes: dict[str, ConfigValue] = {}
        self.on_changed: list[Callable[[], None]] = []

    def changed(self) -> None:
        """Drop the cached values. Must be called after a change of a layer."""
        self._values.clear()
        self._topic_attributes.clear()
        self.version += 1
        for observer in self.on_changed:
            observer()

    def get(self, name: str) -> ConfigValue:
        """The typed value of a broker config for the whole cluster. Raises KeyError."""
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._resolve(name, None)
            return value

    def get_int(self, name: str) -> int:
        """The same as `get`, for an integer."""
        value = self.get(name)
        assert isinstance(value, int)
        return value

    def get_for(self, node_id: int, name: str) -> ConfigValue:
        """The typed value of a broker config on one broker."""
        own = self.dynamic_broker.get(node_id)
        return self._resolve(name, node_id) if own and name in own else self.get(name)

    def dynamic(self, node_id: int, name: str) -> str | None:
        """A dynamic config of one broker, or of all, as text: also one that no table has."""
        own = self.dynamic_broker.get(node_id, {}).get(name)
        return self.dynamic_default.get(name) if own is None else own

    def _resolve(self, name: str, node_id: int | None) -> ConfigValue:
        definition = BROKER_CONFIGS[name]
        for synonym in self.layers(name, node_id):
            if synonym.source is not ConfigSource.DEFAULT and synonym.value is not None:
                return definition.parse(synonym.value)
        return definition.default_value()

    def layers(self, name: str, node_id: int | None) -> Iterator[Synonym]:
        """The values of broker config `name` in all layers, by precedence."""
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
        """The value of a topic config without an override.

        Logs use the value of the cluster; DescribeConfigs shows that of a broker, `node_id`.
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

    @property
    def topic_attributes(self) -> Mapping[str, ConfigValue]:
        """The attributes of `TopicConfigs` for a topic without overrides."""
        known = self._topic_attributes
        if not known:
            known.update((attribute_of(name), self.topic_default(name)) for name in TOPIC_CONFIGS)
        return known

    def group_value(self, group_id: str, name: str) -> ConfigValue:
        """The typed value of a group config: the group's override, else its broker config."""
        definition = GROUP_CONFIGS[name]
        text = self.groups.get(group_id, {}).get(name)
        if text is not None:
            return definition.parse(text)
        synonym = GROUP_SYNONYMS.get(name)
        return definition.default_value() if synonym is None else self.get(synonym)


def attribute_of(name: str) -> str:
    """The attribute of `TopicConfigs` for a topic config."""
    return name.replace(".", "_")


class TopicConfigs:
    """The typed configs of one topic, as attributes (dots become underscores).

    Each topic config is an attribute; those used in the code are declared here. A change of the
    topic's or the brokers' configs changes the object in place.
    """

    cleanup_policy: tuple[str, ...]
    compression_type: str
    delete_retention_ms: int
    flush_messages: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    internal_segment_bytes: int | None
    leader_replication_throttled_replicas: tuple[str, ...]
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
    roll_limits: RollLimits  # the limits of a segment

    def __init__(self, cluster_configs: ClusterConfigs, overrides: Mapping[str, str]) -> None:
        self.overrides: dict[str, str] = {}
        self._cluster_configs = cluster_configs
        self.replace(overrides)

    def replace(self, overrides: Mapping[str, str]) -> None:
        """Replace the overrides by validated ones, and resolve them."""
        self.overrides = dict(overrides)
        self.resolve()

    def resolve(self) -> None:
        """Compute the attributes again, after a change of the brokers' configs."""
        vars(self).update(self._cluster_configs.topic_attributes)
        for name in self.overrides.keys() & TOPIC_CONFIGS.keys():
            value = TOPIC_CONFIGS[name].parse(self.overrides[name])
            setattr(self, attribute_of(name), value)
        self.compacted = "compact" in self.cleanup_policy
        self.deleting = "delete" in self.cleanup_policy
        self.roll_limits = self._roll_limits()
        self.log_append_time = self.message_timestamp_type == "LogAppendTime"

    def _roll_limits(self) -> RollLimits:
        """The limits as LogConfig.segmentSize and maxSegmentMs."""
        segment_bytes, segment_ms = self.internal_segment_bytes, self.segment_ms
        if self.compacted and self.max_compaction_lag_ms > 0:
            # Records that have to be compacted must not be in the active segment (KIP-354).
            segment_ms = min(segment_ms, self.max_compaction_lag_ms)
        return RollLimits(
            self.segment_bytes if segment_bytes is None else segment_bytes,
            segment_ms,
            self.segment_index_bytes,
            self.index_interval_bytes,
        )
