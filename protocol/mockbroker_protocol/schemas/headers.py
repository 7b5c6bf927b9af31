"""Request headers (v0-v2) and response headers (v0-v1).

Request header v0 was only ever used by ControlledShutdown v0. The client id keeps its int16 length
even in the flexible v2, because a broker must read it before it knows that the header is flexible.
"""

from mockbroker_protocol.declare import *

REQUEST_HEADER = Message("RequestHeader", "0-2", flexible="2+", leading=True).of(
    Field("api_key", INT16),
    Field("api_version", INT16),
    Field("correlation_id", INT32),
    Field("client_id", STRING, "1+", nullable=True, default=None, compact=False),
)

RESPONSE_HEADER = Message("ResponseHeader", "0-1", flexible="1+", leading=True).of(
    Field("correlation_id", INT32),
)

MESSAGES = (
    REQUEST_HEADER,
    RESPONSE_HEADER,
)
