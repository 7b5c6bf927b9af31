"""AlterPartitionReassignments (key 45)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterPartitionReassignmentsRequest", "0-1", flexible="0+").of(
    Field("timeout_ms", INT32, default=60000),
    Field("allow_replication_factor_change", BOOL, "1+", default=True),
    Field("topics", Array("ReassignableTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("ReassignablePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("replicas", Array(INT32), nullable=True, default=None, entity=BROKER_ID),
        ),
    ),
)

RESPONSE = Message("AlterPartitionReassignmentsResponse", "0-1", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("allow_replication_factor_change", BOOL, "1+", default=True),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("responses", Array("ReassignableTopicResponse")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("ReassignablePartitionResponse")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
        ),
    ),
)
