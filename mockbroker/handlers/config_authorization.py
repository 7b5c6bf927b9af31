"""Authorization and answers of the APIs about configs.

The ACL is on the topic or group that has the configs; for all other resources it is on the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator
from typing import Any, TypeVar

from mockbroker.core.configs.alter import check_changes
from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from mockbroker.handlers.authorization import (
    DENIED,
    AuthHelper,
    AuthorizationRule,
    on_cluster,
    on_group,
    on_topic,
    requires,
)
from mockbroker.handlers.base import Parked, RequestContext
from mockbroker.handlers.slices import in_slices
from mockbroker_protocol import ErrorCode

Result = TypeVar("Result")
Response = TypeVar("Response")
RESOURCES_PER_SLICE = 200

_RESOURCES: dict[int, ResourceType] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
    ConfigResourceType.BROKER: ResourceType.CLUSTER,
    ConfigResourceType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigResourceType.CLIENT_METRICS: ResourceType.CLUSTER,
}


def config_rules(operation: AclOperation) -> tuple[AuthorizationRule, ...]:
    """One rule for each kind of resource with configs."""
    return (
        requires(on_topic(operation), about=""),
        requires(on_group(operation), about=""),
        requires(on_cluster(operation), about="brokers, loggers, metrics subscriptions"),
    )


def check_authorized(auth: AuthHelper, operation: AclOperation, kind: int, name: str) -> None:
    """Raise ApiError unless the operation is allowed; any is on a resource of unknown type."""
    resource = _RESOURCES.get(kind)
    if resource is ResourceType.CLUSTER:
        name = CLUSTER_NAME
    if resource is None or auth.allows(operation, resource, name):
        return
    error = DENIED[resource]
    # A broker refuses changes of its loggers without a message.
    is_logger = kind == ConfigResourceType.BROKER_LOGGER and operation is AclOperation.ALTER_CONFIGS
    raise ApiError(error, None if is_logger else error.message)


def alter_each(
    ctx: RequestContext,
    request: Any,
    alter: Callable[[Any], None],
    result: Callable[[int, str | None, int, str], Result],
    response: Callable[[list[Result]], Response],
    *,
    needs_value: Callable[[Any], bool],
) -> Response | Parked[Response]:
    """Alter resources one by one, many in slices; refused ones come last.

    Args:
        ctx: the request's context.
        request: an AlterConfigs or IncrementalAlterConfigs request.
        alter: alters a resource, or raises ApiError.
        result: makes a row of the response: of error code, message, type and name.
        response: makes the response of its rows.
        needs_value: whether a change of a config needs a value.
    """

    def alter_all() -> Generator[None, None, Response]:
        return response((yield from _altered(ctx, request.resources, alter, result, needs_value)))

    return in_slices(ctx, request, alter_all(), changes=True)


def _altered(
    ctx: RequestContext,
    resources: Collection[Any],
    alter: Callable[[Any], None],
    result: Callable[[int, str | None, int, str], Result],
    needs_value: Callable[[Any], bool],
) -> Generator[None, None, list[Result]]:
    auth = AuthHelper(ctx)
    counts = Counter((r.resource_type, r.resource_name) for r in resources)
    done: list[Result] = []
    denied: list[Result] = []
    for number, resource in enumerate(resources):
        if number and number % RESOURCES_PER_SLICE == 0:
            yield
        kind, name = resource.resource_type, resource.resource_name
        error, message = ErrorCode.NONE, None
        try:
            if counts[kind, name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            # Before the authorization, as in Kafka.
            check_changes(
                (c.name for c in resource.configs),
                (c.name for c in resource.configs if c.value is None and needs_value(c)),
            )
            check_authorized(auth, AclOperation.ALTER_CONFIGS, kind, name)
            alter(resource)
        except ApiError as refusal:
            error, message = refusal.error, refusal.message
        (denied if error in DENIED.values() else done).append(result(error, message, kind, name))
    return done + denied
