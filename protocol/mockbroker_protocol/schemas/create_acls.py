"""CreateAcls (key 30)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT8, INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "CreateAclsRequest",
    Field(
        "creations",
        Array(
            Shape(
                "AclCreation",
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field("resource_pattern_type", INT8, default=3),
                Field("principal", STRING),
                Field("host", STRING),
                Field("operation", INT8),
                Field("permission_type", INT8),
            )
        ),
    ),
    versions="1-3",
    flexible="2+",
)

RESPONSE = Message(
    "CreateAclsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            Shape(
                "AclCreationResult",
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True),
            )
        ),
    ),
    versions="1-3",
    flexible="2+",
)
