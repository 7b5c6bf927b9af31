"""AlterShareGroupOffsets (key 91)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "AlterShareGroupOffsetsRequest",
    Field("group_id", STRING, entity=GROUP_ID),
    Field(
        "topics",
        Array(
            "AlterShareGroupOffsetsRequestTopic",
            Field("topic_name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "AlterShareGroupOffsetsRequestPartition",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("start_offset", INT64),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "AlterShareGroupOffsetsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field(
        "responses",
        Array(
            "AlterShareGroupOffsetsResponseTopic",
            Field("topic_name", STRING, entity=TOPIC_NAME),
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field(
                "partitions",
                Array(
                    "AlterShareGroupOffsetsResponsePartition",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable=True, default=None),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)
