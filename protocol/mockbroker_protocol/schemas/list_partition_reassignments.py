"""ListPartitionReassignments (key 46)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "ListPartitionReassignmentsRequest",
    Field("timeout_ms", INT32, default=60000),
    Field(
        "topics",
        Array(
            Shape(
                "ListPartitionReassignmentsTopics",
                Field("name", STRING),
                Field("partition_indexes", Array(INT32)),
            )
        ),
        nullable=True,
        default=None,
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "ListPartitionReassignmentsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field(
        "topics",
        Array(
            Shape(
                "OngoingTopicReassignment",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OngoingPartitionReassignment",
                            Field("partition_index", INT32),
                            Field("replicas", Array(INT32)),
                            Field("adding_replicas", Array(INT32)),
                            Field("removing_replicas", Array(INT32)),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)
