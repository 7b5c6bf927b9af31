"""UnregisterBroker (key 64)."""

from mockbroker_protocol.declare import *

REQUEST = Message("UnregisterBrokerRequest", "0", flexible="0+").of(
    Field("broker_id", INT32, entity=BROKER_ID),
)

RESPONSE = Message("UnregisterBrokerResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
)
