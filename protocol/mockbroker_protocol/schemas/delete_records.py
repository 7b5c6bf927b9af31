"""DeleteRecords (key 21)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DeleteRecordsRequest",
    Field(
        "topics",
        Array(
            "DeleteRecordsTopic",
            Field("name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "DeleteRecordsPartition",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("offset", INT64),
                ),
            ),
        ),
    ),
    Field("timeout_ms", INT32),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "DeleteRecordsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            "DeleteRecordsTopicResult",
            Field("name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "DeleteRecordsPartitionResult",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("low_watermark", INT64),
                    Field("error_code", INT16),
                ),
            ),
        ),
    ),
    versions="0-2",
    flexible="2+",
)
