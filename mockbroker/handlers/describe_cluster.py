"""DescribeCluster (60): the cluster's id, its brokers and the broker for controller requests."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.core.security.authorized_operations import NOT_ASKED
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_cluster, requires
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


@api(
    ApiKey.DESCRIBE_CLUSTER,
    versions=(0, 2),
    authorize=by_handler(
        requires(
            on_cluster(AclOperation.DESCRIBE), about="for its operations", otherwise="no operations"
        ),
    ),
)
def describe_cluster(
    ctx: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """List the brokers that have the listener of the request."""
    wanted = request.endpoint_type
    if wanted == CONTROLLERS:
        raise _refusal(
            ctx,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
            " CONTROLLER",
        )
    if wanted != BROKERS:
        message = f"Unsupported endpoint type {wanted}"
        raise _refusal(ctx, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, message)
    brokers = [
        DescribeClusterBroker(
            broker_id=broker.node_id,
            host=broker.endpoints[ctx.listener].host,
            port=broker.endpoints[ctx.listener].port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker in ctx.image.brokers.values()
        if ctx.listener in broker.endpoints
        and (request.include_fenced_brokers or not broker.fenced)
    ]
    controller_id = ctx.image.controller_id
    return DescribeClusterResponse(
        cluster_id=ctx.cluster.cluster_id,
        controller_id=controller_id if any(b.broker_id == controller_id for b in brokers) else -1,
        brokers=brokers,
        cluster_authorized_operations=AuthHelper(ctx).cluster_operations()
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _refusal(ctx: RequestContext, error: ErrorCode, message: str) -> ApiError:
    """Version 0 does not have the two errors about endpoint types."""
    return ApiError(ErrorCode.INVALID_REQUEST if ctx.api_version == 0 else error, message)
