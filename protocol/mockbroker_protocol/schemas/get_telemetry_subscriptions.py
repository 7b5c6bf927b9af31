"""GetTelemetrySubscriptions (key 71)."""

from mockbroker_protocol.declare import *

REQUEST = Message("GetTelemetrySubscriptionsRequest", "0", flexible="0+").of(
    Field("client_instance_id", UUID),
)

RESPONSE = Message("GetTelemetrySubscriptionsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("client_instance_id", UUID),
    Field("subscription_id", INT32),
    Field("accepted_compression_types", Array(INT8)),
    Field("push_interval_ms", INT32),
    Field("telemetry_max_bytes", INT32),
    Field("delta_temporality", BOOL),
    Field("requested_metrics", Array(STRING)),
)
