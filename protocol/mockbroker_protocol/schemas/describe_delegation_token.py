"""DescribeDelegationToken (key 41)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DescribeDelegationTokenRequest",
    Field(
        "owners",
        Array(
            "DescribeDelegationTokenOwner",
            Field("principal_type", STRING),
            Field("principal_name", STRING),
        ),
        nullable=True,
    ),
    versions="1-3",
    flexible="2+",
)

RESPONSE = Message(
    "DescribeDelegationTokenResponse",
    Field("error_code", INT16),
    Field(
        "tokens",
        Array(
            "DescribedDelegationToken",
            Field("principal_type", STRING),
            Field("principal_name", STRING),
            Field("token_requester_principal_type", STRING, "3+"),
            Field("token_requester_principal_name", STRING, "3+"),
            Field("issue_timestamp", INT64),
            Field("expiry_timestamp", INT64),
            Field("max_timestamp", INT64),
            Field("token_id", STRING),
            Field("hmac", BYTES),
            Field(
                "renewers",
                Array(
                    "DescribedDelegationTokenRenewer",
                    Field("principal_type", STRING),
                    Field("principal_name", STRING),
                ),
            ),
        ),
    ),
    Field("throttle_time_ms", INT32),
    versions="1-3",
    flexible="2+",
)
