"""Configs: of a topic or a group for who has a right on that, of all else for who has one on the
cluster.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from mockbroker.core.configs.alter import Op, check_changes
from mockbroker.core.configs.alter import ResourceType as ConfigResourceType
from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import CLUSTER_NAME, Operation, ResourceType
from mockbroker.handlers.authorization.access import (
    Access,
    Go,
    after,
    cluster,
    group,
    guard,
    needs,
    split,
    topic,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import alter_configs as altering
from mockbroker_protocol.messages import incremental_alter_configs as incremental
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

O = Operation  # noqa: E741 - as in the tables of Kafka

_ERRORS = {
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}
_KINDS = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
    ConfigResourceType.BROKER: ResourceType.CLUSTER,
    ConfigResourceType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigResourceType.CLIENT_METRICS: ResourceType.CLUSTER,
}


def _why_denied(access: Access, operation: Operation, kind: int, name: str) -> ErrorCode | None:
    """The error for a client that may not do this; None if it may, or if there is no such kind."""
    protected = _KINDS.get(kind)  # type: ignore[call-overload]
    if protected is None:
        return None
    if protected is ResourceType.CLUSTER:
        name = CLUSTER_NAME
    return None if access.may(operation, protected, name) else _ERRORS[protected]


@guard(
    ApiKey.DESCRIBE_CONFIGS,
    needs(topic(O.DESCRIBE_CONFIGS), otherwise="`TOPIC_AUTHORIZATION_FAILED` for it"),
    needs(group(O.DESCRIBE_CONFIGS), otherwise="`GROUP_AUTHORIZATION_FAILED` for it"),
    needs(
        cluster(O.DESCRIBE_CONFIGS),
        about="brokers, loggers, metrics subscriptions",
        otherwise="`CLUSTER_AUTHORIZATION_FAILED` for it",
    ),
)
def describe_configs(access: Access, request: DescribeConfigsRequest, go: Go) -> object:
    if any(r.resource_type not in _KINDS for r in request.resources):
        return go(request)
    refused: list[DescribeConfigsResult] = []
    granted = []
    for wanted in request.resources:
        kind, name = wanted.resource_type, wanted.resource_name
        error = _why_denied(access, O.DESCRIBE_CONFIGS, kind, name)
        if error is None:
            granted.append(wanted)
        else:
            refused.append(DescribeConfigsResult(error, error.sentence, kind, name))

    def tell(response: DescribeConfigsResponse) -> DescribeConfigsResponse:
        response.results += refused
        return response

    return after(go(msgspec.structs.replace(request, resources=granted)), tell)


_ALTER_RULES = (
    needs(topic(O.ALTER_CONFIGS), otherwise="`TOPIC_AUTHORIZATION_FAILED` for it"),
    needs(group(O.ALTER_CONFIGS), otherwise="`GROUP_AUTHORIZATION_FAILED` for it"),
    needs(
        cluster(O.ALTER_CONFIGS),
        about="brokers, loggers, metrics subscriptions",
        otherwise="`CLUSTER_AUTHORIZATION_FAILED` for it",
    ),
)


@guard(ApiKey.ALTER_CONFIGS, *_ALTER_RULES)
def alter_configs(access: Access, request: altering.AlterConfigsRequest, go: Go) -> object:
    return _alter(access, request, go, altering.AlterConfigsResourceResponse)


@guard(ApiKey.INCREMENTAL_ALTER_CONFIGS, *_ALTER_RULES)
def incremental_alter_configs(
    access: Access, request: incremental.IncrementalAlterConfigsRequest, go: Go
) -> object:
    return _alter(access, request, go, incremental.AlterConfigsResourceResponse)


def _is_malformed(configs: list[Any]) -> bool:
    """Whether the broker refuses changes before it asks who makes them."""
    deletes = int(Op.DELETE)
    valueless = (
        c.name
        for c in configs
        if c.value is None and getattr(c, "config_operation", None) != deletes
    )
    try:
        check_changes((c.name for c in configs), valueless)
    except ApiError:
        return True
    return False


def _alter(access: Access, request: Any, go: Go, make: Any) -> object:
    """A resource that stands twice, or changes that make no sense, are refused for that."""
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)

    def why(wanted: Any) -> ErrorCode | None:
        kind, name = wanted.resource_type, wanted.resource_name
        if counts[kind, name] > 1 or _is_malformed(wanted.configs):
            return None
        return _why_denied(access, O.ALTER_CONFIGS, kind, name)

    granted, denied = split(request.resources, lambda r: why(r) is None)

    def tell(response: Any) -> Any:
        for wanted in denied:
            error = why(wanted)
            assert error is not None
            kind = wanted.resource_type
            message = None if kind == ConfigResourceType.BROKER_LOGGER else error.sentence
            response.responses.append(make(error, message, kind, wanted.resource_name))
        return response

    return after(go(msgspec.structs.replace(request, resources=granted)), tell)
