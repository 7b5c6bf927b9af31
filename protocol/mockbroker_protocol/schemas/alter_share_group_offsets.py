"""AlterShareGroupOffsets (key 91)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "AlterShareGroupOffsetsRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "AlterShareGroupOffsetsRequestTopic",
                Field("topic_name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "AlterShareGroupOffsetsRequestPartition",
                            Field("partition_index", INT32),
                            Field("start_offset", INT64),
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
    "AlterShareGroupOffsetsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field(
        "responses",
        Array(
            Shape(
                "AlterShareGroupOffsetsResponseTopic",
                Field("topic_name", STRING),
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "AlterShareGroupOffsetsResponsePartition",
                            Field("partition_index", INT32),
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
