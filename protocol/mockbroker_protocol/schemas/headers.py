"""Request headers (v0-v2) and response headers (v0-v1).

Request header v0 was only ever used by ControlledShutdown v0. The client id keeps its int16 length
even in the flexible v2, because a broker must read it before it knows that the header is flexible.
"""

from mockbroker_protocol.declare import *

REQUEST_HEADER = Message(
    "RequestHeader",
    Field("api_key", INT16),
    Field("api_version", INT16),
    Field("correlation_id", INT32),
    Field("client_id", STRING, "1+", nullable=True, default=None, compact=False),
    versions="0-2",
    leading=True,
    flexible="2+",
)

RESPONSE_HEADER = Message(
    "ResponseHeader",
    Field("correlation_id", INT32),
    versions="0-1",
    leading=True,
    flexible="1+",
)

MESSAGES = (
    REQUEST_HEADER,
    RESPONSE_HEADER,
)
