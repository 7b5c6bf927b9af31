"""OffsetForLeaderEpoch (key 23)."""

from mockbroker_protocol.declare import *

REQUEST = Message("OffsetForLeaderEpochRequest", "2-4", flexible="4+").of(
    Field("replica_id", INT32, "3+", default=-2, entity=BROKER_ID),
    Field("topics", Array("OffsetForLeaderTopic")).of(
        Field("topic", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("OffsetForLeaderPartition")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("current_leader_epoch", INT32, default=-1),
            Field("leader_epoch", INT32),
        ),
    ),
)

RESPONSE = Message("OffsetForLeaderEpochResponse", "2-4", flexible="4+").of(
    Field("throttle_time_ms", INT32),
    Field("topics", Array("OffsetForLeaderTopicResult")).of(
        Field("topic", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("EpochEndOffset")).of(
            Field("error_code", INT16),
            Field("partition", INT32, own_entity=PARTITION),
            Field("leader_epoch", INT32, default=-1),
            Field("end_offset", INT64, default=-1),
        ),
    ),
)
