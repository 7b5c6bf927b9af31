"""DescribeUserScramCredentials (key 50)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT8, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "DescribeUserScramCredentialsRequest",
    Field(
        "users",
        Array(
            Shape(
                "UserName",
                Field("name", STRING),
            )
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
            Shape(
                "DescribeUserScramCredentialsResult",
                Field("user", STRING),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True),
                Field(
                    "credential_infos",
                    Array(
                        Shape(
                            "CredentialInfo",
                            Field("mechanism", INT8),
                            Field("iterations", INT32),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)
