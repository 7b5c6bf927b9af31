"""ApiVersions (key 18)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ApiVersionsRequest", "0-4", flexible="3+").of(
    Field("client_software_name", STRING, "3+"),
    Field("client_software_version", STRING, "3+"),
)

RESPONSE = Message("ApiVersionsResponse", "0-4", flexible="3+").of(
    Field("error_code", INT16),
    Field("api_keys", Array("ApiVersion")).of(
        Field("api_key", INT16),
        Field("min_version", INT16),
        Field("max_version", INT16),
    ),
    Field("throttle_time_ms", INT32, "1+"),
    Field("supported_features", Array("SupportedFeatureKey"), "3+", tag=0).of(
        Field("name", STRING),
        Field("min_version", INT16),
        Field("max_version", INT16),
    ),
    Field("finalized_features_epoch", INT64, "3+", tag=1, default=-1),
    Field("finalized_features", Array("FinalizedFeatureKey"), "3+", tag=2).of(
        Field("name", STRING),
        Field("max_version_level", INT16),
        Field("min_version_level", INT16),
    ),
    Field("zk_migration_ready", BOOL, "3+", tag=3),
)
