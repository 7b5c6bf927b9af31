"""AlterUserScramCredentials (key 51)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "AlterUserScramCredentialsRequest",
    Field(
        "deletions",
        Array(
            "ScramCredentialDeletion",
            Field("name", STRING),
            Field("mechanism", INT8),
        ),
    ),
    Field(
        "upsertions",
        Array(
            "ScramCredentialUpsertion",
            Field("name", STRING),
            Field("mechanism", INT8),
            Field("iterations", INT32),
            Field("salt", BYTES),
            Field("salted_password", BYTES),
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "AlterUserScramCredentialsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            "AlterUserScramCredentialsResult",
            Field("user", STRING),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
        ),
    ),
    versions="0",
    flexible="0+",
)
