"""CreateAcls (key 30)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "CreateAclsRequest",
    Field(
        "creations",
        Array(
            "AclCreation",
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field("resource_pattern_type", INT8, default=3),
            Field("principal", STRING),
            Field("host", STRING),
            Field("operation", INT8),
            Field("permission_type", INT8),
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
            "AclCreationResult",
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
        ),
    ),
    versions="1-3",
    flexible="2+",
)
