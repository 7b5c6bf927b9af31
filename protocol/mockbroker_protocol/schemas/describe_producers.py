"""DescribeProducers (key 61)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeProducersRequest", "0", flexible="0+").of(
    Field("topics", Array("TopicRequest")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partition_indexes", Array(INT32), own_entity=PARTITION),
    ),
)

RESPONSE = Message("DescribeProducersResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("topics", Array("TopicResponse")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("PartitionResponse")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
            Field("active_producers", Array("ProducerState")).of(
                Field("producer_id", INT64, entity=PRODUCER_ID),
                Field("producer_epoch", INT32, own_entity=PRODUCER_EPOCH),
                Field("last_sequence", INT32, default=-1),
                Field("last_timestamp", INT64, default=-1),
                Field("coordinator_epoch", INT32),
                Field("current_txn_start_offset", INT64, default=-1),
            ),
        ),
    ),
)
