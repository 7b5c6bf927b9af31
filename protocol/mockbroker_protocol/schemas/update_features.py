"""UpdateFeatures (key 57)."""

from mockbroker_protocol.declare import *

REQUEST = Message("UpdateFeaturesRequest", "0-2", flexible="0+").of(
    Field("timeout_ms", INT32, default=60000),
    Field("feature_updates", Array("FeatureUpdateKey")).of(
        Field("feature", STRING),
        Field("max_version_level", INT16),
        Field("allow_downgrade", BOOL, "0"),
        Field("upgrade_type", INT8, "1+", default=1),
    ),
    Field("validate_only", BOOL, "1+"),
)

RESPONSE = Message("UpdateFeaturesResponse", "0-2", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("results", Array("UpdatableFeatureResult"), "0-1").of(
        Field("feature", STRING),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    ),
)
