"""CreateDelegationToken (key 38)."""

from mockbroker_protocol.declare import *

REQUEST = Message("CreateDelegationTokenRequest", "1-3", flexible="2+").of(
    Field("owner_principal_type", STRING, "3+", nullable=True),
    Field("owner_principal_name", STRING, "3+", nullable=True),
    Field("renewers", Array("CreatableRenewers")).of(
        Field("principal_type", STRING),
        Field("principal_name", STRING),
    ),
    Field("max_lifetime_ms", INT64),
)

RESPONSE = Message("CreateDelegationTokenResponse", "1-3", flexible="2+").of(
    Field("error_code", INT16),
    Field("principal_type", STRING),
    Field("principal_name", STRING),
    Field("token_requester_principal_type", STRING, "3+"),
    Field("token_requester_principal_name", STRING, "3+"),
    Field("issue_timestamp_ms", INT64),
    Field("expiry_timestamp_ms", INT64),
    Field("max_timestamp_ms", INT64),
    Field("token_id", STRING),
    Field("hmac", BYTES),
    Field("throttle_time_ms", INT32),
)
