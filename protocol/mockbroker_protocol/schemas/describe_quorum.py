"""DescribeQuorum (key 55)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "DescribeQuorumRequest",
    Field(
        "topics",
        Array(
            Shape(
                "TopicData",
                Field("topic_name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition_index", INT32),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-2",
    flexible="0+",
)

REPLICA_STATE = Shape(
    "ReplicaState",
    Field("replica_id", INT32),
    Field("replica_directory_id", UUID, "2+"),
    Field("log_end_offset", INT64),
    Field("last_fetch_timestamp", INT64, "1+", default=-1),
    Field("last_caught_up_timestamp", INT64, "1+", default=-1),
)

RESPONSE = Message(
    "DescribeQuorumResponse",
    Field("error_code", INT16),
    Field("error_message", STRING, "2+", nullable=True),
    Field(
        "topics",
        Array(
            Shape(
                "TopicData",
                Field("topic_name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, "2+", nullable=True),
                            Field("leader_id", INT32),
                            Field("leader_epoch", INT32),
                            Field("high_watermark", INT64),
                            Field("current_voters", Array(REPLICA_STATE)),
                            Field("observers", Array(REPLICA_STATE)),
                        )
                    ),
                ),
            )
        ),
    ),
    Field(
        "nodes",
        Array(
            Shape(
                "Node",
                Field("node_id", INT32),
                Field(
                    "listeners",
                    Array(
                        Shape(
                            "Listener",
                            Field("name", STRING),
                            Field("host", STRING),
                            Field("port", UINT16),
                        )
                    ),
                ),
            )
        ),
        "2+",
    ),
    versions="0-2",
    flexible="0+",
)
