"""DeleteTopics (key 20)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, UUID, Array, Field, Message, Shape

REQUEST = Message(
    "DeleteTopicsRequest",
    Field(
        "topics",
        Array(
            Shape(
                "DeleteTopicState",
                Field("name", STRING, nullable=True, default=None),
                Field("topic_id", UUID),
            )
        ),
        "6+",
    ),
    Field("topic_names", Array(STRING), "1-5"),
    Field("timeout_ms", INT32),
    versions="1-6",
    flexible="4+",
)

RESPONSE = Message(
    "DeleteTopicsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "responses",
        Array(
            Shape(
                "DeletableTopicResult",
                Field("name", STRING, nullable="6+"),
                Field("topic_id", UUID, "6+"),
                Field("error_code", INT16),
                Field("error_message", STRING, "5+", nullable=True, default=None),
            )
        ),
    ),
    versions="1-6",
    flexible="4+",
)
