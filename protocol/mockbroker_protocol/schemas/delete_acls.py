"""DeleteAcls (key 31)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DeleteAclsRequest",
    Field(
        "filters",
        Array(
            "DeleteAclsFilter",
            Field("resource_type_filter", INT8),
            Field("resource_name_filter", STRING, nullable=True),
            Field("pattern_type_filter", INT8, default=3),
            Field("principal_filter", STRING, nullable=True),
            Field("host_filter", STRING, nullable=True),
            Field("operation", INT8),
            Field("permission_type", INT8),
        ),
    ),
    versions="1-3",
    flexible="2+",
)

RESPONSE = Message(
    "DeleteAclsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "filter_results",
        Array(
            "DeleteAclsFilterResult",
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field(
                "matching_acls",
                Array(
                    "DeleteAclsMatchingAcl",
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
        ),
    ),
    versions="1-3",
    flexible="2+",
)
