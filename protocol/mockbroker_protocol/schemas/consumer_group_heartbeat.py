"""ConsumerGroupHeartbeat (key 68)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, UUID, Array, Field, Message, Shape

REQUEST = Message(
    "ConsumerGroupHeartbeatRequest",
    Field("group_id", STRING),
    Field("member_id", STRING),
    Field("member_epoch", INT32),
    Field("instance_id", STRING, nullable=True, default=None),
    Field("rack_id", STRING, nullable=True, default=None),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("subscribed_topic_names", Array(STRING), nullable=True, default=None),
    Field("subscribed_topic_regex", STRING, "1+", nullable=True, default=None),
    Field("server_assignor", STRING, nullable=True, default=None),
    Field(
        "topic_partitions",
        Array(
            Shape(
                "TopicPartitions",
                Field("topic_id", UUID),
                Field("partitions", Array(INT32)),
            )
        ),
        nullable=True,
        default=None,
    ),
    versions="0-1",
    flexible="0+",
)

RESPONSE = Message(
    "ConsumerGroupHeartbeatResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("member_id", STRING, nullable=True, default=None),
    Field("member_epoch", INT32),
    Field("heartbeat_interval_ms", INT32),
    Field(
        "assignment",
        Shape(
            "Assignment",
            Field(
                "topic_partitions",
                Array(
                    Shape(
                        "TopicPartitions",
                        Field("topic_id", UUID),
                        Field("partitions", Array(INT32)),
                    )
                ),
            ),
        ),
        nullable=True,
        default=None,
    ),
    versions="0-1",
    flexible="0+",
)
