"""OffsetFetch (key 9)."""

from mockbroker_protocol.declare import *

REQUEST = Message("OffsetFetchRequest", "1-10", flexible="6+").of(
    Field("group_id", STRING, "1-7", entity=GROUP_ID),
    Field("topics", Array("OffsetFetchRequestTopic"), "1-7", nullable="2-7", null_is_all=True).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partition_indexes", Array(INT32), own_entity=PARTITION),
    ),
    Field("groups", Array("OffsetFetchRequestGroup"), "8+").of(
        Field("group_id", STRING, entity=GROUP_ID),
        Field("member_id", STRING, "9+", nullable=True, default=None, own_entity=MEMBER_ID),
        Field("member_epoch", INT32, "9+", default=-1, own_entity=GENERATION),
        Field("topics", Array("OffsetFetchRequestTopics"), nullable=True, null_is_all=True).of(
            Field("name", STRING, "8-9", entity=TOPIC_NAME),
            Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
            Field("partition_indexes", Array(INT32), own_entity=PARTITION),
        ),
    ),
    Field("require_stable", BOOL, "7+"),
)

RESPONSE = Message("OffsetFetchResponse", "1-10", flexible="6+").of(
    Field("throttle_time_ms", INT32, "3+"),
    Field("topics", Array("OffsetFetchResponseTopic"), "1-7").of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("OffsetFetchResponsePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("committed_offset", INT64),
            Field("committed_leader_epoch", INT32, "5-7", default=-1),
            Field("metadata", STRING, nullable=True),
            Field("error_code", INT16),
        ),
    ),
    Field("error_code", INT16, "2-7"),
    Field("groups", Array("OffsetFetchResponseGroup"), "8+").of(
        Field("group_id", STRING, entity=GROUP_ID),
        Field("topics", Array("OffsetFetchResponseTopics")).of(
            Field("name", STRING, "8-9", entity=TOPIC_NAME),
            Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
            Field("partitions", Array("OffsetFetchResponsePartitions")).of(
                Field("partition_index", INT32, own_entity=PARTITION),
                Field("committed_offset", INT64),
                Field("committed_leader_epoch", INT32, default=-1),
                Field("metadata", STRING, nullable=True),
                Field("error_code", INT16),
            ),
        ),
        Field("error_code", INT16),
    ),
)
