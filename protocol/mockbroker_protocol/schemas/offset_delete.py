"""OffsetDelete (key 47)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "OffsetDeleteRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetDeleteRequestTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OffsetDeleteRequestPartition",
                            Field("partition_index", INT32),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="none",
)

RESPONSE = Message(
    "OffsetDeleteResponse",
    Field("error_code", INT16),
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetDeleteResponseTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OffsetDeleteResponsePartition",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="none",
)
