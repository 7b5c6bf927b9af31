"""RenewDelegationToken (key 39)."""

from mockbroker_protocol.declare import *

REQUEST = Message("RenewDelegationTokenRequest", "1-2", flexible="2+").of(
    Field("hmac", BYTES),
    Field("renew_period_ms", INT64),
)

RESPONSE = Message("RenewDelegationTokenResponse", "1-2", flexible="2+").of(
    Field("error_code", INT16),
    Field("expiry_timestamp_ms", INT64),
    Field("throttle_time_ms", INT32),
)
