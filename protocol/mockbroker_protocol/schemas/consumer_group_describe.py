"""ConsumerGroupDescribe (key 69)."""

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
    "ConsumerGroupDescribeRequest",
    Field("group_ids", Array(STRING)),
    Field("include_authorized_operations", BOOL),
    versions="0-1",
    flexible="0+",
)

ASSIGNMENT = Shape(
    "Assignment",
    Field(
        "topic_partitions",
        Array(
            Shape(
                "TopicPartitions",
                Field("topic_id", UUID),
                Field("topic_name", STRING),
                Field("partitions", Array(INT32)),
            )
        ),
    ),
)

RESPONSE = Message(
    "ConsumerGroupDescribeResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "groups",
        Array(
            Shape(
                "DescribedGroup",
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True, default=None),
                Field("group_id", STRING),
                Field("group_state", STRING),
                Field("group_epoch", INT32),
                Field("assignment_epoch", INT32),
                Field("assignor_name", STRING),
                Field(
                    "members",
                    Array(
                        Shape(
                            "Member",
                            Field("member_id", STRING),
                            Field("instance_id", STRING, nullable=True, default=None),
                            Field("rack_id", STRING, nullable=True, default=None),
                            Field("member_epoch", INT32),
                            Field("client_id", STRING),
                            Field("client_host", STRING),
                            Field("subscribed_topic_names", Array(STRING)),
                            Field("subscribed_topic_regex", STRING, nullable=True, default=None),
                            Field("assignment", ASSIGNMENT),
                            Field("target_assignment", ASSIGNMENT),
                            Field("member_type", INT8, "1+", default=-1),
                        )
                    ),
                ),
                Field("authorized_operations", INT32, default=-2147483648),
            )
        ),
    ),
    versions="0-1",
    flexible="0+",
)
