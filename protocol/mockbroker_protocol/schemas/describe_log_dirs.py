"""DescribeLogDirs (key 35)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
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
    "DescribeLogDirsRequest",
    Field(
        "topics",
        Array(
            Shape(
                "DescribableLogDirTopic",
                Field("topic", STRING),
                Field("partitions", Array(INT32)),
            )
        ),
        nullable=True,
    ),
    versions="1-5",
    flexible="2+",
)

RESPONSE = Message(
    "DescribeLogDirsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "3+"),
    Field(
        "results",
        Array(
            Shape(
                "DescribeLogDirsResult",
                Field("error_code", INT16),
                Field("log_dir", STRING),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "DescribeLogDirsTopic",
                            Field("name", STRING),
                            Field(
                                "partitions",
                                Array(
                                    Shape(
                                        "DescribeLogDirsPartition",
                                        Field("partition_index", INT32),
                                        Field("partition_size", INT64),
                                        Field("offset_lag", INT64),
                                        Field("is_future_key", BOOL),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
                Field("total_bytes", INT64, "4+", default=-1),
                Field("usable_bytes", INT64, "4+", default=-1),
                Field("is_cordoned", BOOL, "5+"),
            )
        ),
    ),
    versions="1-5",
    flexible="2+",
)
