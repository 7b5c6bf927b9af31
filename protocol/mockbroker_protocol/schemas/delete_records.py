"""DeleteRecords (key 21)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "DeleteRecordsRequest",
    Field(
        "topics",
        Array(
            Shape(
                "DeleteRecordsTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "DeleteRecordsPartition",
                            Field("partition_index", INT32),
                            Field("offset", INT64),
                        )
                    ),
                ),
            )
        ),
    ),
    Field("timeout_ms", INT32),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "DeleteRecordsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "DeleteRecordsTopicResult",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "DeleteRecordsPartitionResult",
                            Field("partition_index", INT32),
                            Field("low_watermark", INT64),
                            Field("error_code", INT16),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-2",
    flexible="2+",
)
