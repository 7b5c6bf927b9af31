"""TxnOffsetCommit (key 28)."""

from mockbroker_protocol.declare import *

REQUEST = Message("TxnOffsetCommitRequest", "0-5", flexible="3+").of(
    Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
    Field("group_id", STRING, entity=GROUP_ID),
    Field("producer_id", INT64, entity=PRODUCER_ID),
    Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
    Field("generation_id", INT32, "3+", default=-1, own_entity=GENERATION),
    Field("member_id", STRING, "3+", own_entity=MEMBER_ID),
    Field("group_instance_id", STRING, "3+", nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("topics", Array("TxnOffsetCommitRequestTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("TxnOffsetCommitRequestPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("committed_offset", INT64),
            Field("committed_leader_epoch", INT32, "2+", default=-1),
            Field("committed_metadata", STRING, nullable=True),
        ),
    ),
)

RESPONSE = Message("TxnOffsetCommitResponse", "0-5", flexible="3+").of(
    Field("throttle_time_ms", INT32),
    Field("topics", Array("TxnOffsetCommitResponseTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("TxnOffsetCommitResponsePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
        ),
    ),
)
