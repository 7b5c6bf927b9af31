"""ListConfigResources (key 74)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ListConfigResourcesRequest", "0-1", flexible="0+").of(
    Field("resource_types", Array(INT8), "1+"),
)

RESPONSE = Message("ListConfigResourcesResponse", "0-1", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("config_resources", Array("ConfigResource")).of(
        Field("resource_name", STRING, own_entity=CONFIG_RESOURCE),
        Field("resource_type", INT8, "1+", default=16),
    ),
)
