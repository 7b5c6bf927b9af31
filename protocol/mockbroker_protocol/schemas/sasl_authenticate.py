"""SaslAuthenticate (key 36)."""

from mockbroker_protocol.declare import *

REQUEST = Message("SaslAuthenticateRequest", "0-2", flexible="2+").of(
    Field("auth_bytes", BYTES),
)

RESPONSE = Message("SaslAuthenticateResponse", "0-2", flexible="2+").of(
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("auth_bytes", BYTES),
    Field("session_lifetime_ms", INT64, "1+"),
)
