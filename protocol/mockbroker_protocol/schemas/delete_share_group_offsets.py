"""DeleteShareGroupOffsets (key 92)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, UUID, Array, Field, Message, Shape

REQUEST = Message(
    "DeleteShareGroupOffsetsRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "DeleteShareGroupOffsetsRequestTopic",
                Field("topic_name", STRING),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DeleteShareGroupOffsetsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field(
        "responses",
        Array(
            Shape(
                "DeleteShareGroupOffsetsResponseTopic",
                Field("topic_name", STRING),
                Field("topic_id", UUID),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True, default=None),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)
