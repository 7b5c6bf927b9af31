"""DescribeCluster (60): the cluster's id, its brokers and whom to send controller requests."""

from __future__ import annotations

from mockbroker.core.security.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


@api(ApiKey.DESCRIBE_CLUSTER, versions=(0, 2))
def describe_cluster(
    ctx: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Name the brokers that have the listener which the request came in on."""
    cluster, wanted = ctx.cluster, request.endpoint_type
    if wanted not in (BROKERS, CONTROLLERS):
        return _refuse(
            ctx, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"There are no endpoints of type {wanted}."
        )
    if wanted == CONTROLLERS:
        return _refuse(
            ctx,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "This is a broker, not a controller.",
        )
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
        cluster_id=cluster.cluster_id,
        controller_id=controller_id if any(b.broker_id == controller_id for b in brokers) else -1,
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _refuse(ctx: RequestContext, error: ErrorCode, message: str) -> DescribeClusterResponse:
    """Version 0 is older than the two errors about endpoint types."""
    return DescribeClusterResponse(
        error_code=ErrorCode.INVALID_REQUEST if ctx.api_version == 0 else error,
        error_message=message,
    )
