"""RenewDelegationToken (key 39)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "RenewDelegationTokenRequest",
    Field("hmac", BYTES),
    Field("renew_period_ms", INT64),
    versions="1-2",
    flexible="2+",
)

RESPONSE = Message(
    "RenewDelegationTokenResponse",
    Field("error_code", INT16),
    Field("expiry_timestamp_ms", INT64),
    Field("throttle_time_ms", INT32),
    versions="1-2",
    flexible="2+",
)
