"""CreatePartitions (key 37)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "CreatePartitionsRequest",
    Field(
        "topics",
        Array(
            "CreatePartitionsTopic",
            Field("name", STRING, entity=TOPIC_NAME),
            Field("count", INT32),
            Field(
                "assignments",
                Array(
                    "CreatePartitionsAssignment",
                    Field("broker_ids", Array(INT32), entity=BROKER_ID),
                ),
                nullable=True,
            ),
        ),
    ),
    Field("timeout_ms", INT32),
    Field("validate_only", BOOL),
    versions="0-3",
    flexible="2+",
)

RESPONSE = Message(
    "CreatePartitionsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            "CreatePartitionsTopicResult",
            Field("name", STRING, entity=TOPIC_NAME),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
        ),
    ),
    versions="0-3",
    flexible="2+",
)
