"""UnregisterBroker (key 64)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Field, Message

REQUEST = Message(
    "UnregisterBrokerRequest",
    Field("broker_id", INT32),
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
