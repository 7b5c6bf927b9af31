"""The configs of a topic with their sources, as DescribeConfigs has them; and those that other
resources have of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.configs.defs import to_text
from mockbroker.core.configs.docs import documentation_of
from mockbroker.core.configs.resources import named_resources, overrides_of, shown
from mockbroker.core.configs.views import topic_entries
from mockbroker.core.views.topics import topic_of

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class ConfigView(msgspec.Struct, frozen=True):
    """One config. `source` is that of the value: "dynamic_topic" for one that the topic has itself,
    else "dynamic_broker", "dynamic_default_broker", "static_broker" or "default".

    `default` is the value that it has without the topic's own.
    """

    name: str
    value: str | None
    source: str
    default: str | None
    documentation: str | None


class OwnConfigsView(msgspec.Struct, frozen=True):
    """The configs that a resource has of its own. `resource_type` is "broker", "group" or
    "client_metrics"; the broker with an empty `resource_name` stands for all brokers. `[hidden]`
    stands for a password and for the value of an unknown config.
    """

    resource_type: str
    resource_name: str
    configs: dict[str, str]


def own_config_views(cluster: Cluster) -> list[OwnConfigsView]:
    """The brokers, groups and client metrics subscriptions with configs of their own."""
    return sorted(
        (
            OwnConfigsView(kind.name.lower(), name, shown(kind, overrides_of(cluster, kind, name)))
            for kind, name in named_resources(cluster)
        ),
        key=lambda view: (view.resource_type, view.resource_name),
    )


def topic_config_views(cluster: Cluster, topic: str) -> list[ConfigView]:
    """All configs of a topic, by name. Raises ApiError if it does not exist."""
    node_id = min(cluster.processes, default=None)  # the last broker may have been removed
    found = [
        ConfigView(
            name=entry.name,
            value=entry.value,
            source=entry.source.name.lower(),
            default=to_text(cluster.configs.topic_default(entry.name, node_id)),
            documentation=documentation_of(entry.name, topic=True),
        )
        for entry in topic_entries(cluster, topic_of(cluster, topic), node_id)
    ]
    return sorted(found, key=lambda view: view.name)
