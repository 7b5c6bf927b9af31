"""WriteShareGroupState (key 85)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    INT8,
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
    "WriteShareGroupStateRequest",
    Field("group_id", STRING),
    Field(
        "topics",
        Array(
            Shape(
                "WriteStateData",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition", INT32),
                            Field("state_epoch", INT32),
                            Field("leader_epoch", INT32),
                            Field("start_offset", INT64),
                            Field("delivery_complete_count", INT32, "1+", default=-1),
                            Field(
                                "state_batches",
                                Array(
                                    Shape(
                                        "StateBatch",
                                        Field("first_offset", INT64),
                                        Field("last_offset", INT64),
                                        Field("delivery_state", INT8),
                                        Field("delivery_count", INT16),
                                    )
                                ),
                            ),
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
    "WriteShareGroupStateResponse",
    Field(
        "results",
        Array(
            Shape(
                "WriteStateResult",
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
    versions="0-1",
    flexible="0+",
)
