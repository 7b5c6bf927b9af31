"""DescribeShareGroupOffsets (key 90)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeShareGroupOffsetsRequest", "0-1", flexible="0+").of(
    Field("groups", Array("DescribeShareGroupOffsetsRequestGroup")).of(
        Field("group_id", STRING, entity=GROUP_ID),
        Field(
            "topics",
            Array("DescribeShareGroupOffsetsRequestTopic"),
            nullable=True,
            null_is_all=True,
        ).of(
            Field("topic_name", STRING, entity=TOPIC_NAME),
            Field("partitions", Array(INT32), own_entity=PARTITION),
        ),
    ),
)

RESPONSE = Message("DescribeShareGroupOffsetsResponse", "0-1", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("groups", Array("DescribeShareGroupOffsetsResponseGroup")).of(
        Field("group_id", STRING, entity=GROUP_ID),
        Field("topics", Array("DescribeShareGroupOffsetsResponseTopic")).of(
            Field("topic_name", STRING, entity=TOPIC_NAME),
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field("partitions", Array("DescribeShareGroupOffsetsResponsePartition")).of(
                Field("partition_index", INT32, own_entity=PARTITION),
                Field("start_offset", INT64),
                Field("leader_epoch", INT32),
                Field("lag", INT64, "1+", default=-1),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=True, default=None),
            ),
        ),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True, default=None),
    ),
)
