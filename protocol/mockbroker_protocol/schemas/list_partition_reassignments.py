"""ListPartitionReassignments (key 46)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ListPartitionReassignmentsRequest", "0", flexible="0+").of(
    Field("timeout_ms", INT32, default=60000),
    Field(
        "topics",
        Array("ListPartitionReassignmentsTopics"),
        nullable=True,
        default=None,
        null_is_all=True,
    ).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partition_indexes", Array(INT32), own_entity=PARTITION),
    ),
)

RESPONSE = Message("ListPartitionReassignmentsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    Field("topics", Array("OngoingTopicReassignment")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("OngoingPartitionReassignment")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("replicas", Array(INT32), entity=BROKER_ID),
            Field("adding_replicas", Array(INT32), entity=BROKER_ID),
            Field("removing_replicas", Array(INT32), entity=BROKER_ID),
        ),
    ),
)
