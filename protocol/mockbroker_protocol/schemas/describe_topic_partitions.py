"""DescribeTopicPartitions (key 75)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeTopicPartitionsRequest", "0", flexible="0+").of(
    Field("topics", Array("TopicRequest")).of(
        Field("name", STRING, entity=TOPIC_NAME),
    ),
    Field("response_partition_limit", INT32, default=2000),
    Field("cursor", Shape("Cursor"), nullable=True, default=None).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partition_index", INT32, own_entity=PARTITION),
    ),
)

RESPONSE = Message("DescribeTopicPartitionsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("topics", Array("DescribeTopicPartitionsResponseTopic")).of(
        Field("error_code", INT16),
        Field("name", STRING, nullable=True, entity=TOPIC_NAME),
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("is_internal", BOOL),
        Field("partitions", Array("DescribeTopicPartitionsResponsePartition")).of(
            Field("error_code", INT16),
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("leader_id", INT32, entity=BROKER_ID),
            Field("leader_epoch", INT32, default=-1),
            Field("replica_nodes", Array(INT32), entity=BROKER_ID),
            Field("isr_nodes", Array(INT32), entity=BROKER_ID),
            Field(
                "eligible_leader_replicas",
                Array(INT32),
                nullable=True,
                default=None,
                entity=BROKER_ID,
            ),
            Field("last_known_elr", Array(INT32), nullable=True, default=None, entity=BROKER_ID),
            Field("offline_replicas", Array(INT32), entity=BROKER_ID),
        ),
        Field("topic_authorized_operations", INT32, default=-2147483648),
    ),
    Field("next_cursor", Shape("Cursor"), nullable=True, default=None).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partition_index", INT32, own_entity=PARTITION),
    ),
)
