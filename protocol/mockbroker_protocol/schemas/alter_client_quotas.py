"""AlterClientQuotas (key 49)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "AlterClientQuotasRequest",
    Field(
        "entries",
        Array(
            "EntryData",
            Field(
                "entity",
                Array(
                    "EntityData",
                    Field("entity_type", STRING),
                    Field("entity_name", STRING, nullable=True),
                ),
            ),
            Field(
                "ops",
                Array(
                    "OpData",
                    Field("key", STRING),
                    Field("value", FLOAT64),
                    Field("remove", BOOL),
                ),
            ),
        ),
    ),
    Field("validate_only", BOOL),
    versions="0-1",
    flexible="1+",
)

RESPONSE = Message(
    "AlterClientQuotasResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "entries",
        Array(
            "EntryData",
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field(
                "entity",
                Array(
                    "EntityData",
                    Field("entity_type", STRING),
                    Field("entity_name", STRING, nullable=True),
                ),
            ),
        ),
    ),
    versions="0-1",
    flexible="1+",
)
