"""SaslHandshake (key 17)."""

from mockbroker_protocol.declare import *

REQUEST = Message("SaslHandshakeRequest", "0-1", flexible="none").of(
    Field("mechanism", STRING),
)

RESPONSE = Message("SaslHandshakeResponse", "0-1", flexible="none").of(
    Field("error_code", INT16),
    Field("mechanisms", Array(STRING)),
)
