"""SaslAuthenticate (key 36)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "SaslAuthenticateRequest",
    Field("auth_bytes", BYTES),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "SaslAuthenticateResponse",
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("auth_bytes", BYTES),
    Field("session_lifetime_ms", INT64, "1+"),
    versions="0-2",
    flexible="2+",
)
