"""LeaveGroup (key 13)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "LeaveGroupRequest",
    Field("group_id", STRING),
    Field("member_id", STRING, "0-2"),
    Field(
        "members",
        Array(
            Shape(
                "MemberIdentity",
                Field("member_id", STRING),
                Field("group_instance_id", STRING, nullable=True, default=None),
                Field("reason", STRING, "5+", nullable=True, default=None),
            )
        ),
        "3+",
    ),
    versions="0-5",
    flexible="4+",
)

RESPONSE = Message(
    "LeaveGroupResponse",
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
    Field(
        "members",
        Array(
            Shape(
                "MemberResponse",
                Field("member_id", STRING),
                Field("group_instance_id", STRING, nullable=True),
                Field("error_code", INT16),
            )
        ),
        "3+",
    ),
    versions="0-5",
    flexible="4+",
)
