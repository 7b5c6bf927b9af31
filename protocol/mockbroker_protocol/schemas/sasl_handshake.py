"""SaslHandshake (key 17)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "SaslHandshakeRequest",
    Field("mechanism", STRING),
    versions="0-1",
    flexible="none",
)

RESPONSE = Message(
    "SaslHandshakeResponse",
    Field("error_code", INT16),
    Field("mechanisms", Array(STRING)),
    versions="0-1",
    flexible="none",
)
