"""DescribeProducers (key 61)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DescribeProducersRequest",
    Field(
        "topics",
        Array(
            "TopicRequest",
            Field("name", STRING, entity=TOPIC_NAME),
            Field("partition_indexes", Array(INT32), own_entity=PARTITION),
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeProducersResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            "TopicResponse",
            Field("name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "PartitionResponse",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable=True, default=None),
                    Field(
                        "active_producers",
                        Array(
                            "ProducerState",
                            Field("producer_id", INT64, entity=PRODUCER_ID),
                            Field("producer_epoch", INT32, own_entity=PRODUCER_EPOCH),
                            Field("last_sequence", INT32, default=-1),
                            Field("last_timestamp", INT64, default=-1),
                            Field("coordinator_epoch", INT32),
                            Field("current_txn_start_offset", INT64, default=-1),
                        ),
                    ),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)
