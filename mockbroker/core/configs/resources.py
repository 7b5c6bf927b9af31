"""Resources and their overrides.

A *resource* is a topic, a broker (or all brokers), a group, a client metrics subscription or the
loggers of a broker. Its *overrides* are the configs that were set for it, as text. The controller
replaces them here and nowhere else, and each change is an event. Levels of loggers are no
overrides: a broker keeps them itself.

Source: ConfigResource, ConfigurationControlManager.replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from mockbroker.core.configs.defs import BROKER_CONFIGS
from mockbroker.core.configs.secrets import HIDDEN, is_secret_config
from mockbroker.core.events import ChangedConfig, ConfigsChanged

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

K = TypeVar("K", int, str)


class ConfigResourceType(IntEnum):
    """The types of resources (ConfigResource.Type), with their codes in messages."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def overrides_of(cluster: ClusterState, kind: ConfigResourceType, name: str) -> Mapping[str, str]:
    """The overrides of a resource; none if it does not exist. The empty name of a broker stands for
    all brokers.
    """
    match kind:
        case ConfigResourceType.TOPIC:
            topic = cluster.topics.get(name)
            return {} if topic is None else topic.configs.overrides
        case ConfigResourceType.BROKER:
            if not name:
                return cluster.configs.dynamic_default
            return cluster.configs.dynamic_broker.get(int(name), {})
        case ConfigResourceType.GROUP:
            return cluster.configs.groups.get(name, {})
        case _:
            return cluster.configs.client_metrics.get(name, {})


def set_overrides(
    cluster: ClusterState, kind: ConfigResourceType, name: str, overrides: Mapping[str, str]
) -> None:
    """Replace the overrides of a resource by validated ones, and emit the changes."""
    changes = _changes(kind, overrides_of(cluster, kind, name), overrides)
    _store(cluster, kind, name, dict(overrides))
    if changes:
        if kind is ConfigResourceType.BROKER and name:
            name = str(int(name))
        runtime = cluster.runtime
        runtime.emit(ConfigsChanged(runtime.now_ms(), kind.name.lower(), name, changes))


def named_resources(cluster: ClusterState) -> Iterator[tuple[ConfigResourceType, str]]:
    """The resources other than topics that have overrides."""
    configs = cluster.configs
    if configs.dynamic_default:
        yield ConfigResourceType.BROKER, ""
    yield from ((ConfigResourceType.BROKER, str(node_id)) for node_id in configs.dynamic_broker)
    yield from ((ConfigResourceType.GROUP, group) for group in configs.groups)
    yield from ((ConfigResourceType.CLIENT_METRICS, name) for name in configs.client_metrics)


def shown(kind: ConfigResourceType, overrides: Mapping[str, str]) -> dict[str, str]:
    """Overrides for people, with `HIDDEN` in place of a value that DescribeConfigs does not tell:
    that of a password, or of a broker config that no table has.
    """
    return {name: HIDDEN if _is_hidden(kind, name) else value for name, value in overrides.items()}


def _is_hidden(kind: ConfigResourceType, name: str) -> bool:
    unknown = kind is ConfigResourceType.BROKER and name not in BROKER_CONFIGS
    return unknown or is_secret_config(name)


def _changes(
    kind: ConfigResourceType, former: Mapping[str, str], overrides: Mapping[str, str]
) -> tuple[ChangedConfig, ...]:
    """The configs with another value than before, by name."""
    changed = [
        name for name in sorted({*former, *overrides}) if former.get(name) != overrides.get(name)
    ]
    before, now = shown(kind, former), shown(kind, overrides)
    return tuple(ChangedConfig(name, before.get(name), now.get(name)) for name in changed)


def _store(
    cluster: ClusterState, kind: ConfigResourceType, name: str, overrides: dict[str, str]
) -> None:
    configs = cluster.configs
    match kind:
        case ConfigResourceType.TOPIC:
            cluster.replace_topic_configs(cluster.topics[name], overrides)
        case ConfigResourceType.BROKER:
            if name:
                _put(configs.dynamic_broker, int(name), overrides)
            else:
                configs.dynamic_default = overrides
            cluster.configs_changed()
        case ConfigResourceType.GROUP:
            _put(configs.groups, name, overrides)
            configs.changed()
        case _:
            _put(configs.client_metrics, name, overrides)
            configs.changed()


def _put(store: dict[K, dict[str, str]], key: K, overrides: dict[str, str]) -> None:
    """Set the overrides of a resource; one without overrides is removed."""
    if overrides:
        store[key] = overrides
    else:
        store.pop(key, None)
