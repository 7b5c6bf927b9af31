"""AlterClientQuotas (key 49)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterClientQuotasRequest", "0-1", flexible="1+").of(
    Field("entries", Array("EntryData")).of(
        Field("entity", Array("EntityData")).of(
            Field("entity_type", STRING),
            Field("entity_name", STRING, nullable=True),
        ),
        Field("ops", Array("OpData")).of(
            Field("key", STRING),
            Field("value", FLOAT64),
            Field("remove", BOOL),
        ),
    ),
    Field("validate_only", BOOL),
)

RESPONSE = Message("AlterClientQuotasResponse", "0-1", flexible="1+").of(
    Field("throttle_time_ms", INT32),
    Field("entries", Array("EntryData")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("entity", Array("EntityData")).of(
            Field("entity_type", STRING),
            Field("entity_name", STRING, nullable=True),
        ),
    ),
)
