"""UpdateFeatures (key 57)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "UpdateFeaturesRequest",
    Field("timeout_ms", INT32, default=60000),
    Field(
        "feature_updates",
        Array(
            "FeatureUpdateKey",
            Field("feature", STRING),
            Field("max_version_level", INT16),
            Field("allow_downgrade", BOOL, "0"),
            Field("upgrade_type", INT8, "1+", default=1),
        ),
    ),
    Field("validate_only", BOOL, "1+"),
    versions="0-2",
    flexible="0+",
)

RESPONSE = Message(
    "UpdateFeaturesResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field(
        "results",
        Array(
            "UpdatableFeatureResult",
            Field("feature", STRING),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
        ),
        "0-1",
    ),
    versions="0-2",
    flexible="0+",
)
