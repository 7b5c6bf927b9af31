"""ElectLeaders (key 43)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT8, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "ElectLeadersRequest",
    Field("election_type", INT8, "1+"),
    Field(
        "topic_partitions",
        Array(
            Shape(
                "TopicPartitions",
                Field("topic", STRING),
                Field("partitions", Array(INT32)),
            )
        ),
        nullable=True,
    ),
    Field("timeout_ms", INT32, default=60000),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "ElectLeadersResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "1+"),
    Field(
        "replica_election_results",
        Array(
            Shape(
                "ReplicaElectionResult",
                Field("topic", STRING),
                Field(
                    "partition_result",
                    Array(
                        Shape(
                            "PartitionResult",
                            Field("partition_id", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-2",
    flexible="2+",
)
