"""Configs of topics, brokers and groups: describe, set, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec

from mockbroker.client.connection import Connection
from mockbroker.client.errors import check
from mockbroker.client.router import Router
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from mockbroker_protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

SET, DELETE = 0, 1


class Resource(IntEnum):
    """What has configs (org.apache.kafka.common.config.ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


# Where a value comes from (DescribeConfigsResponse.ConfigSource).
SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "static",
    5: "default",
    8: "group",
}
_OF_THE_RESOURCE = {
    Resource.TOPIC: (1,),
    Resource.BROKER: (2,),
    Resource.GROUP: (8,),
}
CLUSTER_WIDE = ""  # the name of all brokers together


class Config(msgspec.Struct, frozen=True):
    """One config. `source` says where the value comes from; `is_set`: from the resource itself."""

    name: str
    value: str | None
    source: str
    is_set: bool


class Configs:
    """Configs of topics, brokers and groups."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def resources(self, kind: Resource) -> list[str]:
        """The names of the resources that exist; of groups, those that have configs.

        Raises `UnsupportedVersionError` for groups of a broker older than 4.1.
        """
        if kind is Resource.TOPIC:
            return sorted(topic.name or "" for topic in self._router.metadata(None).topics)
        if kind is Resource.BROKER:
            return [CLUSTER_WIDE, *map(str, self._router.nodes())]
        request = ListConfigResourcesRequest(resource_types=[int(kind)])
        response: ListConfigResourcesResponse = self._router.send_any(request)
        check(response.error_code, "list groups with configs")
        return sorted(each.resource_name for each in response.config_resources)

    def describe(self, kind: Resource, name: str) -> list[Config]:
        """All configs of a resource, by name. Raises `BrokerError`."""
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=int(kind), resource_name=name, configuration_keys=None
                )
            ]
        )
        response: DescribeConfigsResponse = self._broker_of(kind, name).send(request)
        result = response.results[0]
        check(result.error_code, _what(kind, name), result.error_message)
        own = (3,) if kind is Resource.BROKER and not name else _OF_THE_RESOURCE[kind]
        return sorted(
            (
                Config(
                    each.name,
                    each.value,
                    SOURCES.get(each.config_source, "unknown"),
                    each.config_source in own,
                )
                for each in result.configs
            ),
            key=lambda config: config.name,
        )

    def alter(
        self,
        kind: Resource,
        name: str,
        values: Mapping[str, str] | None = None,
        delete: Sequence[str] = (),
    ) -> None:
        """Set configs, and delete others so that the default applies. Raises `BrokerError`."""
        changes = [
            AlterableConfig(name=key, config_operation=SET, value=value)
            for key, value in (values or {}).items()
        ]
        changes += [
            AlterableConfig(name=key, config_operation=DELETE, value=None) for key in delete
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(resource_type=int(kind), resource_name=name, configs=changes)
            ]
        )
        response: IncrementalAlterConfigsResponse = self._broker_of(kind, name).send(request)
        result = response.responses[0]
        check(result.error_code, _what(kind, name), result.error_message)

    def _broker_of(self, kind: Resource, name: str) -> Connection:
        """A broker answers for its own configs; every broker for those of others."""
        if kind is Resource.BROKER and name.isdecimal():
            return self._router.node(int(name))
        return self._router.any()


def _what(kind: Resource, name: str) -> str:
    return f"configs of {kind.name.lower()} {name}" if name else "configs of all brokers"
