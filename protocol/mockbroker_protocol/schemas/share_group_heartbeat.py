"""ShareGroupHeartbeat (key 76)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, UUID, Array, Field, Message, Shape

REQUEST = Message(
    "ShareGroupHeartbeatRequest",
    Field("group_id", STRING),
    Field("member_id", STRING),
    Field("member_epoch", INT32),
    Field("rack_id", STRING, nullable=True, default=None),
    Field("subscribed_topic_names", Array(STRING), nullable=True, default=None),
    versions="1",
    flexible="1+",
)

RESPONSE = Message(
    "ShareGroupHeartbeatResponse",
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
    versions="1",
    flexible="1+",
)
