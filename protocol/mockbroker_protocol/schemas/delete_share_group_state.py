"""DeleteShareGroupState (key 86)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DeleteShareGroupStateRequest",
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field(
        "topics",
        Array(
            "DeleteStateData",
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition", INT32, own_entity=PARTITION),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DeleteShareGroupStateResponse",
    Field(
        "results",
        Array(
            "DeleteStateResult",
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
