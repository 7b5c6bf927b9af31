"""IncrementalAlterConfigs (key 44)."""

from mockbroker_protocol.declare import *

REQUEST = Message("IncrementalAlterConfigsRequest", "0-1", flexible="1+").of(
    Field("resources", Array("AlterConfigsResource")).of(
        Field("resource_type", INT8),
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
        Field("configs", Array("AlterableConfig")).of(
            Field("name", STRING),
            Field("config_operation", INT8),
            Field("value", STRING, nullable=True),
        ),
    ),
    Field("validate_only", BOOL),
)

RESPONSE = Message("IncrementalAlterConfigsResponse", "0-1", flexible="1+").of(
    Field("throttle_time_ms", INT32),
    Field("responses", Array("AlterConfigsResourceResponse")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("resource_type", INT8),
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
    ),
)
