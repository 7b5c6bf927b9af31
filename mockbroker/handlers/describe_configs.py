"""DescribeConfigs (32): configs of topics, brokers, loggers, groups, metrics subscriptions."""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.configs.alter import ResourceType, parse_node_id
from mockbroker.core.configs.docs import documentation_of
from mockbroker.core.configs.values import ConfigSource
from mockbroker.core.configs.views import (
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    default_broker_entries,
    group_entries,
    logger_entries,
    topic_entries,
)
from mockbroker.core.errors import ApiError
from mockbroker.core.topic import why_invalid_name
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


@api(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4))
def describe_configs(
    ctx: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe each resource, or those of its configs that are asked for by name."""
    if any(r.resource_type not in ResourceType._value2member_map_ for r in request.resources):
        error = ErrorCode.INVALID_REQUEST
        return DescribeConfigsResponse(
            results=[_failed(r, error, error.sentence) for r in request.resources]
        )
    return DescribeConfigsResponse(
        results=[_describe(ctx, request, resource) for resource in request.resources]
    )


def _describe(
    ctx: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        entries = _entries(ctx, ResourceType(resource.resource_type), resource.resource_name)
    except ApiError as error:
        return _failed(resource, error.error, error.message or "")
    keys = resource.configuration_keys
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _result(entry, request, resource.resource_type)
            for entry in entries
            if not keys or entry.name in keys
        ],
    )


def _failed(
    resource: DescribeConfigsResource, error: ErrorCode, message: str
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _entries(ctx: RequestContext, kind: ResourceType, name: str) -> Iterable[ConfigEntry]:
    cluster, node_id = ctx.cluster, ctx.broker.node_id
    match kind:
        case ResourceType.TOPIC:
            reason = why_invalid_name(name)
            if reason is not None:
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            if name not in ctx.image.topics:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topic_entries(cluster, ctx.image.topics[name], node_id)
        case ResourceType.BROKER:
            if not name:
                return default_broker_entries(cluster)
            _check_node_id(node_id, name)
            return broker_entries(cluster, node_id)
        case ResourceType.BROKER_LOGGER:
            _check_not_empty(name, "Loggers belong to a broker, which needs a name.")
            _check_node_id(node_id, name)
            return logger_entries(cluster, node_id)
        case ResourceType.GROUP:
            _check_not_empty(name, "A group needs a name.")
            return group_entries(cluster, name, node_id)
        case ResourceType.CLIENT_METRICS:
            _check_not_empty(name, "A subscription needs a name.")
            return client_metrics_entries(cluster, name)


def _check_not_empty(name: str, message: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _check_node_id(node_id: int, name: str) -> None:
    """A broker knows only its own configs."""
    named = parse_node_id(name)
    if named is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is not a node id.")
    if named != node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"This is broker {node_id}, which knows its own configs only.",
        )


def _result(
    entry: ConfigEntry, request: DescribeConfigsRequest, resource_type: int
) -> DescribeConfigsResourceResult:
    documentation: str | None = None
    if entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER:
        documentation = ""
    elif request.include_documentation:
        documentation = documentation_of(entry.name, topic=resource_type == ResourceType.TOPIC)
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(s.name, s.value, s.source) for s in entry.synonyms]
        if request.include_synonyms
        else [],
        config_type=entry.type,
        documentation=documentation,
    )
