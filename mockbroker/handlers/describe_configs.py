"""DescribeConfigs (32): configs of topics, brokers, loggers, groups, metrics subscriptions."""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.configs.docs import documentation_of
from mockbroker.core.configs.resources import ConfigResourceType
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
from mockbroker.core.metadata.topic import why_invalid_name
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import DENIED, AuthHelper, by_handler
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.config_authorization import check_authorized, config_rules
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.rows import Rows
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from mockbroker_protocol.types import parse_integer


@api(
    ApiKey.DESCRIBE_CONFIGS,
    versions=(1, 4),
    authorize=by_handler(*config_rules(AclOperation.DESCRIBE_CONFIGS)),
    refusal=Refusal(repeats_code=True),
    rows=Rows("resources", "results", last=frozenset(DENIED.values())),
)
def describe_configs(
    ctx: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe each resource, or those of its configs that are named. Refused ones come last."""
    if any(r.resource_type not in ConfigResourceType._value2member_map_ for r in request.resources):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    auth = AuthHelper(ctx)
    results = [_describe(auth, request, resource) for resource in request.resources]
    results.sort(key=lambda result: result.error_code in DENIED.values())
    return DescribeConfigsResponse(results=results)


def _describe(
    auth: AuthHelper, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    kind, name = ConfigResourceType(resource.resource_type), resource.resource_name
    try:
        check_authorized(auth, AclOperation.DESCRIBE_CONFIGS, kind, name)
        entries = _entries(auth.ctx, kind, name)
    except ApiError as error:
        return DescribeConfigsResult(
            error_code=error.error,
            error_message=error.message or "",
            resource_type=kind,
            resource_name=name,
        )
    keys = resource.configuration_keys
    return DescribeConfigsResult(
        resource_type=kind,
        resource_name=name,
        configs=[
            _result(entry, request, kind) for entry in entries if not keys or entry.name in keys
        ],
    )


def _entries(ctx: RequestContext, kind: ConfigResourceType, name: str) -> Iterable[ConfigEntry]:
    cluster, node_id = ctx.cluster, ctx.broker.node_id
    match kind:
        case ConfigResourceType.TOPIC:
            reason = why_invalid_name(name)
            if reason is not None:
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            if name not in ctx.image.topics:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topic_entries(cluster, ctx.image.topics[name], node_id)
        case ConfigResourceType.BROKER:
            if not name:
                return default_broker_entries(cluster)
            _check_node_id(node_id, name, f"{node_id} or empty string,")
            return broker_entries(cluster, node_id)
        case ConfigResourceType.BROKER_LOGGER:
            _check_not_empty(name, "Broker id must not be empty")
            _check_node_id(node_id, name, f"{node_id}")
            return logger_entries(cluster, node_id)
        case ConfigResourceType.GROUP:
            _check_not_empty(name, "Group name must not be empty")
            return group_entries(cluster, name, node_id)
        case ConfigResourceType.CLIENT_METRICS:
            _check_not_empty(name, "Client metrics subscription name must not be empty")
            return client_metrics_entries(cluster, name)


def _check_not_empty(name: str, message: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _check_node_id(node_id: int, name: str, expected: str) -> None:
    """Raise ApiError unless `name` is this broker's id: it has only its own configs."""
    named = parse_integer(name)
    if named is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if named != node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {expected} but received {name}",
        )


def _result(
    entry: ConfigEntry, request: DescribeConfigsRequest, kind: ConfigResourceType
) -> DescribeConfigsResourceResult:
    documentation: str | None = None
    if entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER:
        documentation = ""
    elif request.include_documentation:
        documentation = documentation_of(entry.name, topic=kind is ConfigResourceType.TOPIC)
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
