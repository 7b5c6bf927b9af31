"""UnregisterBroker (key 64)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "UnregisterBrokerRequest",
    Field("broker_id", INT32, entity=BROKER_ID),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "UnregisterBrokerResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    versions="0",
    flexible="0+",
)
