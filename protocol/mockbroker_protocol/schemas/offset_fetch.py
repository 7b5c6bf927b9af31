"""OffsetFetch (key 9)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "OffsetFetchRequest",
    Field("group_id", STRING, "1-7", entity=GROUP_ID),
    Field(
        "topics",
        Array(
            "OffsetFetchRequestTopic",
            Field("name", STRING, entity=TOPIC_NAME),
            Field("partition_indexes", Array(INT32), own_entity=PARTITION),
        ),
        "1-7",
        nullable="2-7",
        null_is_all=True,
    ),
    Field(
        "groups",
        Array(
            "OffsetFetchRequestGroup",
            Field("group_id", STRING, entity=GROUP_ID),
            Field("member_id", STRING, "9+", nullable=True, default=None, own_entity=MEMBER_ID),
            Field("member_epoch", INT32, "9+", default=-1, own_entity=GENERATION),
            Field(
                "topics",
                Array(
                    "OffsetFetchRequestTopics",
                    Field("name", STRING, "8-9", entity=TOPIC_NAME),
                    Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
                    Field("partition_indexes", Array(INT32), own_entity=PARTITION),
                ),
                nullable=True,
                null_is_all=True,
            ),
        ),
        "8+",
    ),
    Field("require_stable", BOOL, "7+"),
    versions="1-10",
    flexible="6+",
)

RESPONSE = Message(
    "OffsetFetchResponse",
    Field("throttle_time_ms", INT32, "3+"),
    Field(
        "topics",
        Array(
            "OffsetFetchResponseTopic",
            Field("name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "OffsetFetchResponsePartition",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("committed_offset", INT64),
                    Field("committed_leader_epoch", INT32, "5-7", default=-1),
                    Field("metadata", STRING, nullable=True),
                    Field("error_code", INT16),
                ),
            ),
        ),
        "1-7",
    ),
    Field("error_code", INT16, "2-7"),
    Field(
        "groups",
        Array(
            "OffsetFetchResponseGroup",
            Field("group_id", STRING, entity=GROUP_ID),
            Field(
                "topics",
                Array(
                    "OffsetFetchResponseTopics",
                    Field("name", STRING, "8-9", entity=TOPIC_NAME),
                    Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
                    Field(
                        "partitions",
                        Array(
                            "OffsetFetchResponsePartitions",
                            Field("partition_index", INT32, own_entity=PARTITION),
                            Field("committed_offset", INT64),
                            Field("committed_leader_epoch", INT32, default=-1),
                            Field("metadata", STRING, nullable=True),
                            Field("error_code", INT16),
                        ),
                    ),
                ),
            ),
            Field("error_code", INT16),
        ),
        "8+",
    ),
    versions="1-10",
    flexible="6+",
)
