"""AlterConfigs (key 33)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterConfigsRequest", "0-2", flexible="2+").of(
    Field("resources", Array("AlterConfigsResource")).of(
        Field("resource_type", INT8),
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
        Field("configs", Array("AlterableConfig")).of(
            Field("name", STRING),
            Field("value", STRING, nullable=True),
        ),
    ),
    Field("validate_only", BOOL),
)

RESPONSE = Message("AlterConfigsResponse", "0-2", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("responses", Array("AlterConfigsResourceResponse")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("resource_type", INT8),
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
    ),
)
