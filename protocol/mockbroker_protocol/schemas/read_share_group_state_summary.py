"""ReadShareGroupStateSummary (key 87)."""

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
    "ReadShareGroupStateSummaryRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "ReadStateSummaryData",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition", INT32),
                            Field("leader_epoch", INT32),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-1",
    flexible="0+",
)

RESPONSE = Message(
    "ReadShareGroupStateSummaryResponse",
    Field(
        "results",
        Array(
            Shape(
                "ReadStateSummaryResult",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionResult",
                            Field("partition", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True, default=None),
                            Field("state_epoch", INT32),
                            Field("leader_epoch", INT32),
                            Field("start_offset", INT64),
                            Field("delivery_complete_count", INT32, "1+", default=-1),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-1",
    flexible="0+",
)
