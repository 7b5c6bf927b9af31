"""PushTelemetry (key 72)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "PushTelemetryRequest",
    Field("client_instance_id", UUID),
    Field("subscription_id", INT32),
    Field("terminating", BOOL),
    Field("compression_type", INT8),
    Field("metrics", BYTES),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "PushTelemetryResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    versions="0",
    flexible="0+",
)
