"""GetTelemetrySubscriptions (key 71), versions 0.

Generated from `schemas/get_telemetry_subscriptions.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class GetTelemetrySubscriptionsRequest(Struct, gc=False):
    client_instance_id: bytes = ZERO_UUID
    unknown_tags: UnknownTags = None


class GetTelemetrySubscriptionsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: bytes = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: list[int] = []
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = []
    unknown_tags: UnknownTags = None
