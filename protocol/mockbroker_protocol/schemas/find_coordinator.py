"""FindCoordinator (key 10)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT8, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "FindCoordinatorRequest",
    Field("key", STRING, "0-3"),
    Field("key_type", INT8, "1+"),
    Field("coordinator_keys", Array(STRING), "4+"),
    versions="0-6",
    flexible="3+",
)

RESPONSE = Message(
    "FindCoordinatorResponse",
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16, "0-3"),
    Field("error_message", STRING, "1-3", nullable=True),
    Field("node_id", INT32, "0-3"),
    Field("host", STRING, "0-3"),
    Field("port", INT32, "0-3"),
    Field(
        "coordinators",
        Array(
            Shape(
                "Coordinator",
                Field("key", STRING),
                Field("node_id", INT32),
                Field("host", STRING),
                Field("port", INT32),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True),
            )
        ),
        "4+",
    ),
    versions="0-6",
    flexible="3+",
)
