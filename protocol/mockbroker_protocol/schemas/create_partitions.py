"""CreatePartitions (key 37)."""

from __future__ import annotations

from mockbroker_protocol.declare import BOOL, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "CreatePartitionsRequest",
    Field(
        "topics",
        Array(
            Shape(
                "CreatePartitionsTopic",
                Field("name", STRING),
                Field("count", INT32),
                Field(
                    "assignments",
                    Array(
                        Shape(
                            "CreatePartitionsAssignment",
                            Field("broker_ids", Array(INT32)),
                        )
                    ),
                    nullable=True,
                ),
            )
        ),
    ),
    Field("timeout_ms", INT32),
    Field("validate_only", BOOL),
    versions="0-3",
    flexible="2+",
)

RESPONSE = Message(
    "CreatePartitionsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            Shape(
                "CreatePartitionsTopicResult",
                Field("name", STRING),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True, default=None),
            )
        ),
    ),
    versions="0-3",
    flexible="2+",
)
