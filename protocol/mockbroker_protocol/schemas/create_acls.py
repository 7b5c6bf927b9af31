"""CreateAcls (key 30)."""

from mockbroker_protocol.declare import *

REQUEST = Message("CreateAclsRequest", "1-3", flexible="2+").of(
    Field("creations", Array("AclCreation")).of(
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("resource_pattern_type", INT8, default=3),
        Field("principal", STRING),
        Field("host", STRING),
        Field("operation", INT8),
        Field("permission_type", INT8),
    ),
)

RESPONSE = Message("CreateAclsResponse", "1-3", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("results", Array("AclCreationResult")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    ),
)
