"""OffsetForLeaderEpoch (key 23)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "OffsetForLeaderEpochRequest",
    Field("replica_id", INT32, "3+", default=-2),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetForLeaderTopic",
                Field("topic", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OffsetForLeaderPartition",
                            Field("partition", INT32),
                            Field("current_leader_epoch", INT32, default=-1),
                            Field("leader_epoch", INT32),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="2-4",
    flexible="4+",
)

RESPONSE = Message(
    "OffsetForLeaderEpochResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetForLeaderTopicResult",
                Field("topic", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "EpochEndOffset",
                            Field("error_code", INT16),
                            Field("partition", INT32),
                            Field("leader_epoch", INT32, default=-1),
                            Field("end_offset", INT64, default=-1),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="2-4",
    flexible="4+",
)
