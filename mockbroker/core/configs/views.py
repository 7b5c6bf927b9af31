"""The entries of configs for DescribeConfigs and CreateTopics (ConfigHelper).

The synonyms of an entry are the sources with a value, by precedence; the first one is its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.defs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    ConfigDef,
    UpdateMode,
    to_text,
)
from mockbroker.core.configs.values import ClusterConfigs, ConfigSource, Synonym, family_of
from mockbroker.core.metadata.topic import Topic


class ConfigEntry(NamedTuple):
    """One config. `type` is its code in messages, 0 for an unknown name."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: list[Synonym]
    type: int


def topic_entries(cluster: Cluster, topic: Topic, node_id: int | None) -> Iterator[ConfigEntry]:
    """The configs of a topic on broker `node_id`; None for those that the cluster has for all."""
    overrides = topic.configs.overrides
    for name, definition in TOPIC_CONFIGS.items():
        if definition.internal and name not in overrides:
            continue
        synonyms = _topic_config_synonyms(cluster.configs, name, node_id)
        if name in overrides:
            value = to_text(definition.parse(overrides[name]))
            synonyms.insert(0, Synonym(name, value, ConfigSource.DYNAMIC_TOPIC))
        else:
            value = to_text(cluster.configs.topic_default(name, node_id))
        yield _entry(definition, value, synonyms, read_only=False)


def created_topic_entries(cluster: Cluster, overrides: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """The configs of a new topic, by name (KafkaConfigSchema).

    The controller returns the text of an override unchanged, and the broker config in the smallest
    unit that is set.
    """
    for name, definition in sorted(TOPIC_CONFIGS.items()):
        if name in overrides:
            synonyms = [Synonym(name, overrides[name], ConfigSource.DYNAMIC_TOPIC)]
            yield _entry(definition, overrides[name], synonyms, read_only=False)
        elif not definition.internal:
            value = to_text(cluster.configs.topic_default(name))
            set_at = [
                synonym
                for broker_name in TOPIC_SYNONYMS.get(name, ())
                for synonym in cluster.configs.layers(broker_name, None)
                if synonym.source is not ConfigSource.DEFAULT
            ]
            set_at.sort(key=lambda synonym: synonym.source)
            yield _entry(definition, value, set_at, read_only=False)


def broker_entries(cluster: Cluster, node_id: int) -> Iterator[ConfigEntry]:
    """All configs of one broker; internal ones only if they are set (ConfigHelper.allConfigs)."""
    configs = cluster.configs
    own = configs.dynamic_broker.get(node_id, {})
    broker = cluster.processes.get(node_id)
    assert broker is not None
    identity = broker.static_configs()
    for name, definition in BROKER_CONFIGS.items():
        if definition.internal and name not in configs.static:
            continue
        synonyms = _broker_synonyms(configs, name, node_id)
        if name in identity:
            at = sum(s.source < ConfigSource.STATIC_BROKER for s in synonyms)
            synonyms.insert(at, Synonym(name, identity[name], ConfigSource.STATIC_BROKER))
            value: str | None = identity[name]
        else:
            value = to_text(configs.get_for(node_id, name))
        yield _entry(definition, value, synonyms, read_only=_read_only(definition))
    for name in configs.static:
        if name not in BROKER_CONFIGS:  # the authorizer's
            yield _unknown_entry(name, ConfigSource.STATIC_BROKER)
    for name in own:
        if name not in BROKER_CONFIGS:  # dynamic configs are not checked against the tables
            yield _unknown_entry(name, ConfigSource.DYNAMIC_BROKER)


def default_broker_entries(cluster: Cluster) -> Iterator[ConfigEntry]:
    """The dynamic configs of all brokers."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    for name, text in cluster.configs.dynamic_default.items():
        definition = BROKER_CONFIGS.get(name)
        if definition is None:
            yield _unknown_entry(name, source)
        else:
            synonyms = [Synonym(name, text, source)]
            yield _entry(definition, text, synonyms, read_only=_read_only(definition))


def group_entries(cluster: Cluster, group_id: str, node_id: int) -> Iterator[ConfigEntry]:
    """The configs of a group, which need not exist."""
    overrides = cluster.configs.groups.get(group_id, {})
    for name, definition in GROUP_CONFIGS.items():
        value = to_text(cluster.configs.group_value(group_id, name))
        behind = GROUP_SYNONYMS.get(name)
        if behind is None:
            synonyms = [Synonym(name, definition.default, ConfigSource.DEFAULT)]
        else:
            synonyms = _broker_synonyms(cluster.configs, behind, node_id)
        if name in overrides:
            synonyms.insert(0, Synonym(name, value, ConfigSource.GROUP))
        yield _entry(definition, value, synonyms, read_only=False)


def client_metrics_entries(cluster: Cluster, subscription: str) -> Iterator[ConfigEntry]:
    """The configs of a client metrics subscription, which need not exist."""
    overrides = cluster.configs.client_metrics.get(subscription, {})
    for name, definition in CLIENT_METRICS_CONFIGS.items():
        text = overrides.get(name)
        synonyms = [] if text is None else [Synonym(name, text, ConfigSource.CLIENT_METRICS)]
        value = definition.default if text is None else text
        yield _entry(definition, value, synonyms, read_only=False)


def logger_entries(cluster: Cluster, node_id: int) -> Iterator[ConfigEntry]:
    """The levels of one broker's loggers."""
    broker = cluster.processes.get(node_id)
    assert broker is not None
    for name, level in broker.logger_levels.items():
        yield ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, False, False, [], 0)


def _entry(
    definition: ConfigDef, value: str | None, synonyms: list[Synonym], *, read_only: bool
) -> ConfigEntry:
    if definition.sensitive:
        value = None
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    kind = int(definition.type)
    return ConfigEntry(
        definition.name, value, source, read_only, definition.sensitive, synonyms, kind
    )


def _unknown_entry(name: str, source: ConfigSource) -> ConfigEntry:
    """An unknown config. Its value may be a secret, so it is not shown."""
    return ConfigEntry(name, None, source, True, True, [Synonym(name, None, source)], 0)


def _read_only(definition: ConfigDef) -> bool:
    return definition.mode is UpdateMode.READ_ONLY


def _topic_config_synonyms(
    configs: ClusterConfigs, topic_config: str, node_id: int | None
) -> list[Synonym]:
    names = TOPIC_SYNONYMS.get(topic_config)
    return [] if names is None else _broker_synonyms(configs, names[0], node_id)


def _broker_synonyms(configs: ClusterConfigs, name: str, node_id: int | None) -> list[Synonym]:
    """The values of `name` and of its configs in other units, from that of `name` on.

    Kafka omits the values before it: log.retention.ms shows log.retention.hours only if it is set.
    """
    found = [synonym for each in family_of(name) for synonym in configs.layers(each, node_id)]
    found.sort(key=lambda synonym: synonym.source)
    start = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[start:]
