"""DescribeTopicPartitions (key 75)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UUID,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "DescribeTopicPartitionsRequest",
    Field(
        "topics",
        Array(
            Shape(
                "TopicRequest",
                Field("name", STRING),
            )
        ),
    ),
    Field("response_partition_limit", INT32, default=2000),
    Field(
        "cursor",
        Shape(
            "Cursor",
            Field("topic_name", STRING),
            Field("partition_index", INT32),
        ),
        nullable=True,
        default=None,
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeTopicPartitionsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "DescribeTopicPartitionsResponseTopic",
                Field("error_code", INT16),
                Field("name", STRING, nullable=True),
                Field("topic_id", UUID),
                Field("is_internal", BOOL),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "DescribeTopicPartitionsResponsePartition",
                            Field("error_code", INT16),
                            Field("partition_index", INT32),
                            Field("leader_id", INT32),
                            Field("leader_epoch", INT32, default=-1),
                            Field("replica_nodes", Array(INT32)),
                            Field("isr_nodes", Array(INT32)),
                            Field(
                                "eligible_leader_replicas",
                                Array(INT32),
                                nullable=True,
                                default=None,
                            ),
                            Field("last_known_elr", Array(INT32), nullable=True, default=None),
                            Field("offline_replicas", Array(INT32)),
                        )
                    ),
                ),
                Field("topic_authorized_operations", INT32, default=-2147483648),
            )
        ),
    ),
    Field(
        "next_cursor",
        Shape(
            "Cursor",
            Field("topic_name", STRING),
            Field("partition_index", INT32),
        ),
        nullable=True,
        default=None,
    ),
    versions="0",
    flexible="0+",
)
