"""AlterPartitionReassignments (key 45)."""

from __future__ import annotations

from mockbroker_protocol.declare import BOOL, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "AlterPartitionReassignmentsRequest",
    Field("timeout_ms", INT32, default=60000),
    Field("allow_replication_factor_change", BOOL, "1+", default=True),
    Field(
        "topics",
        Array(
            Shape(
                "ReassignableTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "ReassignablePartition",
                            Field("partition_index", INT32),
                            Field("replicas", Array(INT32), nullable=True, default=None),
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
    "AlterPartitionReassignmentsResponse",
    Field("throttle_time_ms", INT32),
    Field("allow_replication_factor_change", BOOL, "1+", default=True),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field(
        "responses",
        Array(
            Shape(
                "ReassignableTopicResponse",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "ReassignablePartitionResponse",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-1",
    flexible="0+",
)
