"""DescribeDelegationToken (key 41)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeDelegationTokenRequest", "1-3", flexible="2+").of(
    Field("owners", Array("DescribeDelegationTokenOwner"), nullable=True).of(
        Field("principal_type", STRING),
        Field("principal_name", STRING),
    ),
)

RESPONSE = Message("DescribeDelegationTokenResponse", "1-3", flexible="2+").of(
    Field("error_code", INT16),
    Field("tokens", Array("DescribedDelegationToken")).of(
        Field("principal_type", STRING),
        Field("principal_name", STRING),
        Field("token_requester_principal_type", STRING, "3+"),
        Field("token_requester_principal_name", STRING, "3+"),
        Field("issue_timestamp", INT64),
        Field("expiry_timestamp", INT64),
        Field("max_timestamp", INT64),
        Field("token_id", STRING),
        Field("hmac", BYTES),
        Field("renewers", Array("DescribedDelegationTokenRenewer")).of(
            Field("principal_type", STRING),
            Field("principal_name", STRING),
        ),
    ),
    Field("throttle_time_ms", INT32),
)
