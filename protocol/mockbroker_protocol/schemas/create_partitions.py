"""CreatePartitions (key 37)."""

from mockbroker_protocol.declare import *

REQUEST = Message("CreatePartitionsRequest", "0-3", flexible="2+").of(
    Field("topics", Array("CreatePartitionsTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("count", INT32),
        Field("assignments", Array("CreatePartitionsAssignment"), nullable=True).of(
            Field("broker_ids", Array(INT32), entity=BROKER_ID),
        ),
    ),
    Field("timeout_ms", INT32),
    Field("validate_only", BOOL),
)

RESPONSE = Message("CreatePartitionsResponse", "0-3", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("results", Array("CreatePartitionsTopicResult")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True, default=None),
    ),
)
