"""DescribeQuorum (key 55)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeQuorumRequest", "0-2", flexible="0+").of(
    Field("topics", Array("TopicData")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
        ),
    ),
)

REPLICA_STATE = Shape("ReplicaState").of(
    Field("replica_id", INT32, entity=BROKER_ID),
    Field("replica_directory_id", UUID, "2+"),
    Field("log_end_offset", INT64),
    Field("last_fetch_timestamp", INT64, "1+", default=-1),
    Field("last_caught_up_timestamp", INT64, "1+", default=-1),
)

RESPONSE = Message("DescribeQuorumResponse", "0-2", flexible="0+").of(
    Field("error_code", INT16),
    Field("error_message", STRING, "2+", nullable=True),
    Field("topics", Array("TopicData")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, "2+", nullable=True),
            Field("leader_id", INT32, entity=BROKER_ID),
            Field("leader_epoch", INT32),
            Field("high_watermark", INT64),
            Field("current_voters", Array(REPLICA_STATE)),
            Field("observers", Array(REPLICA_STATE)),
        ),
    ),
    Field("nodes", Array("Node"), "2+").of(
        Field("node_id", INT32, entity=BROKER_ID),
        Field("listeners", Array("Listener")).of(
            Field("name", STRING),
            Field("host", STRING),
            Field("port", UINT16),
        ),
    ),
)
