"""AlterPartition (key 56). Brokers send it to the controller; no client does."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterPartitionRequest", "2-3", flexible="0+").of(
    Field("broker_id", INT32, entity=BROKER_ID),
    Field("broker_epoch", INT64, default=-1),
    Field("topics", Array("TopicData")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("leader_epoch", INT32),
            Field("new_isr", Array(INT32), "2", entity=BROKER_ID),
            Field("new_isr_with_epochs", Array("BrokerState"), "3+").of(
                Field("broker_id", INT32, entity=BROKER_ID),
                Field("broker_epoch", INT64, default=-1),
            ),
            Field("leader_recovery_state", INT8),
            Field("partition_epoch", INT32),
        ),
    ),
)

RESPONSE = Message("AlterPartitionResponse", "2-3", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("topics", Array("TopicData")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("leader_id", INT32, entity=BROKER_ID),
            Field("leader_epoch", INT32),
            Field("isr", Array(INT32), entity=BROKER_ID),
            Field("leader_recovery_state", INT8),
            Field("partition_epoch", INT32),
        ),
    ),
)
