"""ListOffsets (key 2)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ListOffsetsRequest", "1-11", flexible="6+").of(
    Field("replica_id", INT32, entity=BROKER_ID),
    Field("isolation_level", INT8, "2+"),
    Field("topics", Array("ListOffsetsTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("ListOffsetsPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("current_leader_epoch", INT32, "4+", default=-1),
            Field("timestamp", INT64),
        ),
    ),
    Field("timeout_ms", INT32, "10+"),
)

RESPONSE = Message("ListOffsetsResponse", "1-11", flexible="6+").of(
    Field("throttle_time_ms", INT32, "2+"),
    Field("topics", Array("ListOffsetsTopicResponse")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("ListOffsetsPartitionResponse")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("timestamp", INT64, default=-1),
            Field("offset", INT64, default=-1),
            Field("leader_epoch", INT32, "4+", default=-1),
        ),
    ),
)
