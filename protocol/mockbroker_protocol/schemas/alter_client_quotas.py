"""AlterClientQuotas (key 49)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    FLOAT64,
    INT16,
    INT32,
    STRING,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "AlterClientQuotasRequest",
    Field(
        "entries",
        Array(
            Shape(
                "EntryData",
                Field(
                    "entity",
                    Array(
                        Shape(
                            "EntityData",
                            Field("entity_type", STRING),
                            Field("entity_name", STRING, nullable=True),
                        )
                    ),
                ),
                Field(
                    "ops",
                    Array(
                        Shape(
                            "OpData",
                            Field("key", STRING),
                            Field("value", FLOAT64),
                            Field("remove", BOOL),
                        )
                    ),
                ),
            )
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
            Shape(
                "EntryData",
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True),
                Field(
                    "entity",
                    Array(
                        Shape(
                            "EntityData",
                            Field("entity_type", STRING),
                            Field("entity_name", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0-1",
    flexible="1+",
)
