"""OffsetCommit (key 8)."""

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
    "OffsetCommitRequest",
    Field("group_id", STRING),
    Field("generation_id_or_member_epoch", INT32, default=-1),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "7+", nullable=True, default=None),
    Field("retention_time_ms", INT64, "2-4", default=-1),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetCommitRequestTopic",
                Field("name", STRING, "2-9"),
                Field("topic_id", UUID, "10+"),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OffsetCommitRequestPartition",
                            Field("partition_index", INT32),
                            Field("committed_offset", INT64),
                            Field("committed_leader_epoch", INT32, "6+", default=-1),
                            Field("committed_metadata", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="2-10",
    flexible="8+",
)

RESPONSE = Message(
    "OffsetCommitResponse",
    Field("throttle_time_ms", INT32, "3+"),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetCommitResponseTopic",
                Field("name", STRING, "2-9"),
                Field("topic_id", UUID, "10+"),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OffsetCommitResponsePartition",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="2-10",
    flexible="8+",
)
