"""DescribeClientQuotas (key 48)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DescribeClientQuotasRequest",
    Field(
        "components",
        Array(
            "ComponentData",
            Field("entity_type", STRING),
            Field("match_type", INT8),
            Field("match", STRING, nullable=True),
        ),
    ),
    Field("strict", BOOL),
    versions="0-1",
    flexible="1+",
)

RESPONSE = Message(
    "DescribeClientQuotasResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
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
                "values",
                Array(
                    "ValueData",
                    Field("key", STRING),
                    Field("value", FLOAT64),
                ),
            ),
        ),
        nullable=True,
    ),
    versions="0-1",
    flexible="1+",
)
