"""InitializeShareGroupState (key 83)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "InitializeShareGroupStateRequest",
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field(
        "topics",
        Array(
            "InitializeStateData",
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition", INT32, own_entity=PARTITION),
                    Field("state_epoch", INT32),
                    Field("start_offset", INT64),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "InitializeShareGroupStateResponse",
    Field(
        "results",
        Array(
            "InitializeStateResult",
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field(
                "partitions",
                Array(
                    "PartitionResult",
                    Field("partition", INT32, own_entity=PARTITION),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable=True, default=None),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)
