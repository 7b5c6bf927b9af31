"""GetTelemetrySubscriptions (71): the metrics that a client pushes (KIP-714)."""

from __future__ import annotations

from mockbroker.core.telemetry.telemetry import ACCEPTED_COMPRESSION
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


@api(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    versions=(0, 0),
    authorize=everyone("no ACL is required"),
)
def get_telemetry_subscriptions(
    ctx: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Answer with the metrics and the interval; a client without an id gets one."""
    telemetry = ctx.cluster.telemetry
    instance = telemetry.subscribe(
        ctx.broker.node_id,
        request.client_instance_id,
        client_attributes(ctx),
        ctx.connection,
        ctx.now_ms,
    )
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED_COMPRESSION),
        push_interval_ms=instance.requested.interval_ms,
        telemetry_max_bytes=telemetry.size_max,
        delta_temporality=True,
        requested_metrics=list(instance.requested.metrics),
    )


def client_attributes(ctx: RequestContext) -> dict[str, str]:
    """The attributes that subscriptions match (ClientMetricsInstanceMetadata)."""
    connection = ctx.connection
    return {
        "client_id": ctx.client_id,
        "client_software_name": connection.software_name,
        "client_software_version": connection.software_version,
        "client_source_address": connection.client_host,
        "client_source_port": str(connection.client_port),
    }
