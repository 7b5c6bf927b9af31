"""PushTelemetry (72): receive a client's metrics (KIP-714)."""

from __future__ import annotations

from mockbroker.core.ids import uuid_text
from mockbroker.core.telemetry.telemetry import Push
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.get_telemetry_subscriptions import client_attributes
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


@api(
    ApiKey.PUSH_TELEMETRY,
    versions=(0, 0),
    authorize=everyone("no ACL is required"),
)
def push_telemetry(ctx: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
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
    ctx.cluster.telemetry.push(
        push, request.client_instance_id, request.subscription_id, ctx.connection
    )
    return PushTelemetryResponse()
