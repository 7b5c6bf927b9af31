"""PushTelemetry (key 72), versions 0.

Generated from `schemas/push_telemetry.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class PushTelemetryRequest(Struct, gc=False):
    client_instance_id: bytes = ZERO_UUID
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""
    unknown_tags: UnknownTags = None


class PushTelemetryResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None
