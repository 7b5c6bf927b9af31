"""AlterConfigs (key 33)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT8,
    INT16,
    INT32,
    STRING,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "AlterConfigsRequest",
    Field(
        "resources",
        Array(
            Shape(
                "AlterConfigsResource",
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field(
                    "configs",
                    Array(
                        Shape(
                            "AlterableConfig",
                            Field("name", STRING),
                            Field("value", STRING, nullable=True),
                        )
                    ),
                ),
            )
        ),
    ),
    Field("validate_only", BOOL),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "AlterConfigsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "responses",
        Array(
            Shape(
                "AlterConfigsResourceResponse",
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True),
                Field("resource_type", INT8),
                Field("resource_name", STRING),
            )
        ),
    ),
    versions="0-2",
    flexible="2+",
)
