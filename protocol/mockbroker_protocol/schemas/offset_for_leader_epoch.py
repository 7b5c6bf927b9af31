"""OffsetForLeaderEpoch (key 23)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "OffsetForLeaderEpochRequest",
    Field("replica_id", INT32, "3+", default=-2, entity=BROKER_ID),
    Field(
        "topics",
        Array(
            "OffsetForLeaderTopic",
            Field("topic", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "OffsetForLeaderPartition",
                    Field("partition", INT32, own_entity=PARTITION),
                    Field("current_leader_epoch", INT32, default=-1),
                    Field("leader_epoch", INT32),
                ),
            ),
        ),
    ),
    versions="2-4",
    flexible="4+",
)

RESPONSE = Message(
    "OffsetForLeaderEpochResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            "OffsetForLeaderTopicResult",
            Field("topic", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "EpochEndOffset",
                    Field("error_code", INT16),
                    Field("partition", INT32, own_entity=PARTITION),
                    Field("leader_epoch", INT32, default=-1),
                    Field("end_offset", INT64, default=-1),
                ),
            ),
        ),
    ),
    versions="2-4",
    flexible="4+",
)
