"""DescribeClientQuotas (key 48)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeClientQuotasRequest", "0-1", flexible="1+").of(
    Field("components", Array("ComponentData")).of(
        Field("entity_type", STRING),
        Field("match_type", INT8),
        Field("match", STRING, nullable=True),
    ),
    Field("strict", BOOL),
)

RESPONSE = Message("DescribeClientQuotasResponse", "0-1", flexible="1+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("entries", Array("EntryData"), nullable=True).of(
        Field("entity", Array("EntityData")).of(
            Field("entity_type", STRING),
            Field("entity_name", STRING, nullable=True),
        ),
        Field("values", Array("ValueData")).of(
            Field("key", STRING),
            Field("value", FLOAT64),
        ),
    ),
)
