"""DeleteGroups (key 42)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "DeleteGroupsRequest",
    Field("groups_names", Array(STRING)),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "DeleteGroupsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            Shape(
                "DeletableGroupResult",
                Field("group_id", STRING),
                Field("error_code", INT16),
            )
        ),
    ),
    versions="0-2",
    flexible="2+",
)
