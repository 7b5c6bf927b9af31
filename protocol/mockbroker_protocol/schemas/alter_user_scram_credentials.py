"""AlterUserScramCredentials (key 51)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterUserScramCredentialsRequest", "0", flexible="0+").of(
    Field("deletions", Array("ScramCredentialDeletion")).of(
        Field("name", STRING),
        Field("mechanism", INT8),
    ),
    Field("upsertions", Array("ScramCredentialUpsertion")).of(
        Field("name", STRING),
        Field("mechanism", INT8),
        Field("iterations", INT32),
        Field("salt", BYTES),
        Field("salted_password", BYTES),
    ),
)

RESPONSE = Message("AlterUserScramCredentialsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("results", Array("AlterUserScramCredentialsResult")).of(
        Field("user", STRING),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    ),
)
