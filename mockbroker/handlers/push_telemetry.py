"""PushTelemetry (72): a client's metrics, kept for whoever wants to look at them (KIP-714)."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import uuid_text
from mockbroker.core.telemetry.telemetry import Push
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.get_telemetry_subscriptions import client_attributes
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


@api(ApiKey.PUSH_TELEMETRY, versions=(0, 0))
def push_telemetry(ctx: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Take what the client was asked for, when it was asked for it."""
    push = Push(
        time_ms=ctx.now_ms,
        broker_id=ctx.broker.node_id,
        instance_id=uuid_text(request.client_instance_id),
        principal=ctx.connection.principal,
        attributes=client_attributes(ctx),
        terminating=request.terminating,
        compression=request.compression_type,
        metrics=bytes(request.metrics),
    )
    try:
        ctx.cluster.telemetry.push(
            push, request.client_instance_id, request.subscription_id, ctx.connection
        )
    except ApiError as error:
        return PushTelemetryResponse(error_code=error.error)
    return PushTelemetryResponse()
