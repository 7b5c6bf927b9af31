"""DescribeUserScramCredentials (key 50)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DescribeUserScramCredentialsRequest",
    Field(
        "users",
        Array(
            "UserName",
            Field("name", STRING),
        ),
        nullable=True,
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeUserScramCredentialsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field(
        "results",
        Array(
            "DescribeUserScramCredentialsResult",
            Field("user", STRING),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field(
                "credential_infos",
                Array(
                    "CredentialInfo",
                    Field("mechanism", INT8),
                    Field("iterations", INT32),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)
