"""OffsetDelete (key 47)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "OffsetDeleteRequest",
    Field("group_id", STRING, entity=GROUP_ID),
    Field(
        "topics",
        Array(
            "OffsetDeleteRequestTopic",
            Field("name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "OffsetDeleteRequestPartition",
                    Field("partition_index", INT32, own_entity=PARTITION),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="none",
)

RESPONSE = Message(
    "OffsetDeleteResponse",
    Field("error_code", INT16),
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            "OffsetDeleteResponseTopic",
            Field("name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "OffsetDeleteResponsePartition",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("error_code", INT16),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="none",
)
