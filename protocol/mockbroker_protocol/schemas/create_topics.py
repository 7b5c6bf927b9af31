"""CreateTopics (key 19)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT8,
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
    "CreateTopicsRequest",
    Field(
        "topics",
        Array(
            Shape(
                "CreatableTopic",
                Field("name", STRING),
                Field("num_partitions", INT32),
                Field("replication_factor", INT16),
                Field(
                    "assignments",
                    Array(
                        Shape(
                            "CreatableReplicaAssignment",
                            Field("partition_index", INT32),
                            Field("broker_ids", Array(INT32)),
                        )
                    ),
                ),
                Field(
                    "configs",
                    Array(
                        Shape(
                            "CreatableTopicConfig",
                            Field("name", STRING),
                            Field("value", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    Field("timeout_ms", INT32, default=60000),
    Field("validate_only", BOOL),
    versions="2-7",
    flexible="5+",
)

RESPONSE = Message(
    "CreateTopicsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "CreatableTopicResult",
                Field("name", STRING),
                Field("topic_id", UUID, "7+"),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True),
                Field("topic_config_error_code", INT16, "5+", tag=0),
                Field("num_partitions", INT32, "5+", default=-1),
                Field("replication_factor", INT16, "5+", default=-1),
                Field(
                    "configs",
                    Array(
                        Shape(
                            "CreatableTopicConfigs",
                            Field("name", STRING),
                            Field("value", STRING, nullable=True),
                            Field("read_only", BOOL),
                            Field("config_source", INT8, default=-1),
                            Field("is_sensitive", BOOL),
                        )
                    ),
                    "5+",
                    nullable=True,
                ),
            )
        ),
    ),
    versions="2-7",
    flexible="5+",
)
