"""DescribeAcls (key 29)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeAclsRequest", "1-3", flexible="2+").of(
    Field("resource_type_filter", INT8),
    Field("resource_name_filter", STRING, nullable=True),
    Field("pattern_type_filter", INT8, default=3),
    Field("principal_filter", STRING, nullable=True),
    Field("host_filter", STRING, nullable=True),
    Field("operation", INT8),
    Field("permission_type", INT8),
)

RESPONSE = Message("DescribeAclsResponse", "1-3", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("resources", Array("DescribeAclsResource")).of(
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("pattern_type", INT8, default=3),
        Field("acls", Array("AclDescription")).of(
            Field("principal", STRING),
            Field("host", STRING),
            Field("operation", INT8),
            Field("permission_type", INT8),
        ),
    ),
)
