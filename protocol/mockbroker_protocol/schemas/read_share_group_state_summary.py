"""ReadShareGroupStateSummary (key 87)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "ReadShareGroupStateSummaryRequest",
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field(
        "topics",
        Array(
            "ReadStateSummaryData",
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition", INT32, own_entity=PARTITION),
                    Field("leader_epoch", INT32),
                ),
            ),
        ),
    ),
    versions="0-1",
    flexible="0+",
)

RESPONSE = Message(
    "ReadShareGroupStateSummaryResponse",
    Field(
        "results",
        Array(
            "ReadStateSummaryResult",
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field(
                "partitions",
                Array(
                    "PartitionResult",
                    Field("partition", INT32, own_entity=PARTITION),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable=True, default=None),
                    Field("state_epoch", INT32),
                    Field("leader_epoch", INT32),
                    Field("start_offset", INT64),
                    Field("delivery_complete_count", INT32, "1+", default=-1),
                ),
            ),
        ),
    ),
    versions="0-1",
    flexible="0+",
)
