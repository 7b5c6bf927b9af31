"""DescribeShareGroupOffsets (key 90)."""

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
    "DescribeShareGroupOffsetsRequest",
    Field(
        "groups",
        Array(
            Shape(
                "DescribeShareGroupOffsetsRequestGroup",
                Field("group_id", STRING),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "DescribeShareGroupOffsetsRequestTopic",
                            Field("topic_name", STRING),
                            Field("partitions", Array(INT32)),
                        )
                    ),
                    nullable=True,
                ),
            )
        ),
    ),
    versions="0-1",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeShareGroupOffsetsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "groups",
        Array(
            Shape(
                "DescribeShareGroupOffsetsResponseGroup",
                Field("group_id", STRING),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "DescribeShareGroupOffsetsResponseTopic",
                            Field("topic_name", STRING),
                            Field("topic_id", UUID),
                            Field(
                                "partitions",
                                Array(
                                    Shape(
                                        "DescribeShareGroupOffsetsResponsePartition",
                                        Field("partition_index", INT32),
                                        Field("start_offset", INT64),
                                        Field("leader_epoch", INT32),
                                        Field("lag", INT64, "1+", default=-1),
                                        Field("error_code", INT16),
                                        Field("error_message", STRING, nullable=True, default=None),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True, default=None),
            )
        ),
    ),
    versions="0-1",
    flexible="0+",
)
