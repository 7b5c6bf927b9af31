"""DeleteAcls (key 31)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DeleteAclsRequest", "1-3", flexible="2+").of(
    Field("filters", Array("DeleteAclsFilter")).of(
        Field("resource_type_filter", INT8),
        Field("resource_name_filter", STRING, nullable=True),
        Field("pattern_type_filter", INT8, default=3),
        Field("principal_filter", STRING, nullable=True),
        Field("host_filter", STRING, nullable=True),
        Field("operation", INT8),
        Field("permission_type", INT8),
    ),
)

RESPONSE = Message("DeleteAclsResponse", "1-3", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("filter_results", Array("DeleteAclsFilterResult")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("matching_acls", Array("DeleteAclsMatchingAcl")).of(
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field("pattern_type", INT8, default=3),
            Field("principal", STRING),
            Field("host", STRING),
            Field("operation", INT8),
            Field("permission_type", INT8),
        ),
    ),
)
