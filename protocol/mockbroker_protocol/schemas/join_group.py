"""JoinGroup (key 11)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    STRING,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "JoinGroupRequest",
    Field("group_id", STRING),
    Field("session_timeout_ms", INT32),
    Field("rebalance_timeout_ms", INT32, "1+", default=-1),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "5+", nullable=True, default=None),
    Field("protocol_type", STRING),
    Field(
        "protocols",
        Array(
            Shape(
                "JoinGroupRequestProtocol",
                Field("name", STRING),
                Field("metadata", BYTES),
            )
        ),
    ),
    Field("reason", STRING, "8+", nullable=True, default=None),
    versions="0-9",
    flexible="6+",
)

RESPONSE = Message(
    "JoinGroupResponse",
    Field("throttle_time_ms", INT32, "2+"),
    Field("error_code", INT16),
    Field("generation_id", INT32, default=-1),
    Field("protocol_type", STRING, "7+", nullable=True, default=None),
    Field("protocol_name", STRING, nullable="7+"),
    Field("leader", STRING),
    Field("skip_assignment", BOOL, "9+"),
    Field("member_id", STRING),
    Field(
        "members",
        Array(
            Shape(
                "JoinGroupResponseMember",
                Field("member_id", STRING),
                Field("group_instance_id", STRING, "5+", nullable=True, default=None),
                Field("metadata", BYTES),
            )
        ),
    ),
    versions="0-9",
    flexible="6+",
)
