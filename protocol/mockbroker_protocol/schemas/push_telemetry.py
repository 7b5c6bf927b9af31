"""PushTelemetry (key 72)."""

from mockbroker_protocol.declare import *

REQUEST = Message("PushTelemetryRequest", "0", flexible="0+").of(
    Field("client_instance_id", UUID),
    Field("subscription_id", INT32),
    Field("terminating", BOOL),
    Field("compression_type", INT8),
    Field("metrics", BYTES),
)

RESPONSE = Message("PushTelemetryResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
)
