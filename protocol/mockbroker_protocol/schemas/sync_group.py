"""SyncGroup (key 14)."""

from __future__ import annotations

from mockbroker_protocol.declare import BYTES, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "SyncGroupRequest",
    Field("group_id", STRING),
    Field("generation_id", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "3+", nullable=True, default=None),
    Field("protocol_type", STRING, "5+", nullable=True, default=None),
    Field("protocol_name", STRING, "5+", nullable=True, default=None),
    Field(
        "assignments",
        Array(
            Shape(
                "SyncGroupRequestAssignment",
                Field("member_id", STRING),
                Field("assignment", BYTES),
            )
        ),
    ),
    versions="0-5",
    flexible="4+",
)

RESPONSE = Message(
    "SyncGroupResponse",
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
    Field("protocol_type", STRING, "5+", nullable=True, default=None),
    Field("protocol_name", STRING, "5+", nullable=True, default=None),
    Field("assignment", BYTES),
    versions="0-5",
    flexible="4+",
)
