"""DescribeShareGroupOffsets (key 90)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DescribeShareGroupOffsetsRequest",
    Field(
        "groups",
        Array(
            "DescribeShareGroupOffsetsRequestGroup",
            Field("group_id", STRING, entity=GROUP_ID),
            Field(
                "topics",
                Array(
                    "DescribeShareGroupOffsetsRequestTopic",
                    Field("topic_name", STRING, entity=TOPIC_NAME),
                    Field("partitions", Array(INT32), own_entity=PARTITION),
                ),
                nullable=True,
                null_is_all=True,
            ),
        ),
    ),
    versions="0-1",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeShareGroupOffsetsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "groups",
        Array(
            "DescribeShareGroupOffsetsResponseGroup",
            Field("group_id", STRING, entity=GROUP_ID),
            Field(
                "topics",
                Array(
                    "DescribeShareGroupOffsetsResponseTopic",
                    Field("topic_name", STRING, entity=TOPIC_NAME),
                    Field("topic_id", UUID, own_entity=TOPIC_ID),
                    Field(
                        "partitions",
                        Array(
                            "DescribeShareGroupOffsetsResponsePartition",
                            Field("partition_index", INT32, own_entity=PARTITION),
                            Field("start_offset", INT64),
                            Field("leader_epoch", INT32),
                            Field("lag", INT64, "1+", default=-1),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True, default=None),
                        ),
                    ),
                ),
            ),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
        ),
    ),
    versions="0-1",
    flexible="0+",
)
