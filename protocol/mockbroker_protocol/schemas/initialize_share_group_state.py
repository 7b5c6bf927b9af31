"""InitializeShareGroupState (key 83)."""

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
    "InitializeShareGroupStateRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "InitializeStateData",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition", INT32),
                            Field("state_epoch", INT32),
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
    "InitializeShareGroupStateResponse",
    Field(
        "results",
        Array(
            Shape(
                "InitializeStateResult",
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
