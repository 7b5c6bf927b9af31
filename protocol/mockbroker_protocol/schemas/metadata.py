"""Metadata (key 3)."""

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
    "MetadataRequest",
    Field(
        "topics",
        Array(
            Shape(
                "MetadataRequestTopic",
                Field("topic_id", UUID, "10+"),
                Field("name", STRING, nullable="10+"),
            )
        ),
        nullable="1+",
    ),
    Field("allow_auto_topic_creation", BOOL, "4+", default=True),
    Field("include_cluster_authorized_operations", BOOL, "8-10"),
    Field("include_topic_authorized_operations", BOOL, "8+"),
    versions="0-13",
    flexible="9+",
)

RESPONSE = Message(
    "MetadataResponse",
    Field("throttle_time_ms", INT32, "3+"),
    Field(
        "brokers",
        Array(
            Shape(
                "MetadataResponseBroker",
                Field("node_id", INT32),
                Field("host", STRING),
                Field("port", INT32),
                Field("rack", STRING, "1+", nullable=True, default=None),
            )
        ),
    ),
    Field("cluster_id", STRING, "2+", nullable=True, default=None),
    Field("controller_id", INT32, "1+", default=-1),
    Field(
        "topics",
        Array(
            Shape(
                "MetadataResponseTopic",
                Field("error_code", INT16),
                Field("name", STRING, nullable="12+"),
                Field("topic_id", UUID, "10+"),
                Field("is_internal", BOOL, "1+"),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "MetadataResponsePartition",
                            Field("error_code", INT16),
                            Field("partition_index", INT32),
                            Field("leader_id", INT32),
                            Field("leader_epoch", INT32, "7+", default=-1),
                            Field("replica_nodes", Array(INT32)),
                            Field("isr_nodes", Array(INT32)),
                            Field("offline_replicas", Array(INT32), "5+"),
                        )
                    ),
                ),
                Field("topic_authorized_operations", INT32, "8+", default=-2147483648),
            )
        ),
    ),
    Field("cluster_authorized_operations", INT32, "8-10", default=-2147483648),
    Field("error_code", INT16, "13+"),
    versions="0-13",
    flexible="9+",
)
