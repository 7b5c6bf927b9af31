"""DescribeConfigs (key 32)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeConfigsRequest", "1-4", flexible="4+").of(
    Field("resources", Array("DescribeConfigsResource")).of(
        Field("resource_type", INT8),
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
        Field("configuration_keys", Array(STRING), nullable=True),
    ),
    Field("include_synonyms", BOOL),
    Field("include_documentation", BOOL, "3+"),
)

RESPONSE = Message("DescribeConfigsResponse", "1-4", flexible="4+").of(
    Field("throttle_time_ms", INT32),
    Field("results", Array("DescribeConfigsResult")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("resource_type", INT8),
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
        Field("configs", Array("DescribeConfigsResourceResult")).of(
            Field("name", STRING),
            Field("value", STRING, nullable=True),
            Field("read_only", BOOL),
            Field("config_source", INT8, default=-1),
            Field("is_sensitive", BOOL),
            Field("synonyms", Array("DescribeConfigsSynonym")).of(
                Field("name", STRING),
                Field("value", STRING, nullable=True),
                Field("source", INT8),
            ),
            Field("config_type", INT8, "3+"),
            Field("documentation", STRING, "3+", nullable=True),
        ),
    ),
)
