"""DescribeUserScramCredentials (key 50)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeUserScramCredentialsRequest", "0", flexible="0+").of(
    Field("users", Array("UserName"), nullable=True).of(
        Field("name", STRING),
    ),
)

RESPONSE = Message("DescribeUserScramCredentialsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("results", Array("DescribeUserScramCredentialsResult")).of(
        Field("user", STRING),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("credential_infos", Array("CredentialInfo")).of(
            Field("mechanism", INT8),
            Field("iterations", INT32),
        ),
    ),
)
