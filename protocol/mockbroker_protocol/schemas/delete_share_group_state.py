"""DeleteShareGroupState (key 86)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, UUID, Array, Field, Message, Shape

REQUEST = Message(
    "DeleteShareGroupStateRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "DeleteStateData",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition", INT32),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DeleteShareGroupStateResponse",
    Field(
        "results",
        Array(
            Shape(
                "DeleteStateResult",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionResult",
                            Field("partition", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True, default=None),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)
