"""OffsetCommit (key 8)."""

from mockbroker_protocol.declare import *

REQUEST = Message("OffsetCommitRequest", "2-10", flexible="8+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("generation_id_or_member_epoch", INT32, default=-1, own_entity=GENERATION),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("group_instance_id", STRING, "7+", nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("retention_time_ms", INT64, "2-4", default=-1),
    Field("topics", Array("OffsetCommitRequestTopic")).of(
        Field("name", STRING, "2-9", entity=TOPIC_NAME),
        Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
        Field("partitions", Array("OffsetCommitRequestPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("committed_offset", INT64),
            Field("committed_leader_epoch", INT32, "6+", default=-1),
            Field("committed_metadata", STRING, nullable=True),
        ),
    ),
)

RESPONSE = Message("OffsetCommitResponse", "2-10", flexible="8+").of(
    Field("throttle_time_ms", INT32, "3+"),
    Field("topics", Array("OffsetCommitResponseTopic")).of(
        Field("name", STRING, "2-9", entity=TOPIC_NAME),
        Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
        Field("partitions", Array("OffsetCommitResponsePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
        ),
    ),
)
