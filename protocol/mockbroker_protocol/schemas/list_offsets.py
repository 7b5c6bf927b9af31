"""ListOffsets (key 2)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "ListOffsetsRequest",
    Field("replica_id", INT32),
    Field("isolation_level", INT8, "2+"),
    Field(
        "topics",
        Array(
            Shape(
                "ListOffsetsTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "ListOffsetsPartition",
                            Field("partition_index", INT32),
                            Field("current_leader_epoch", INT32, "4+", default=-1),
                            Field("timestamp", INT64),
                        )
                    ),
                ),
            )
        ),
    ),
    Field("timeout_ms", INT32, "10+"),
    versions="1-11",
    flexible="6+",
)

RESPONSE = Message(
    "ListOffsetsResponse",
    Field("throttle_time_ms", INT32, "2+"),
    Field(
        "topics",
        Array(
            Shape(
                "ListOffsetsTopicResponse",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "ListOffsetsPartitionResponse",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("timestamp", INT64, default=-1),
                            Field("offset", INT64, default=-1),
                            Field("leader_epoch", INT32, "4+", default=-1),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="1-11",
    flexible="6+",
)
