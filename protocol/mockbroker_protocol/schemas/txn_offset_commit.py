"""TxnOffsetCommit (key 28)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "TxnOffsetCommitRequest",
    Field("transactional_id", STRING),
    Field("group_id", STRING),
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
    Field("generation_id", INT32, "3+", default=-1),
    Field("member_id", STRING, "3+"),
    Field("group_instance_id", STRING, "3+", nullable=True, default=None),
    Field(
        "topics",
        Array(
            Shape(
                "TxnOffsetCommitRequestTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "TxnOffsetCommitRequestPartition",
                            Field("partition_index", INT32),
                            Field("committed_offset", INT64),
                            Field("committed_leader_epoch", INT32, "2+", default=-1),
                            Field("committed_metadata", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-5",
    flexible="3+",
)

RESPONSE = Message(
    "TxnOffsetCommitResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "TxnOffsetCommitResponseTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "TxnOffsetCommitResponsePartition",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-5",
    flexible="3+",
)
