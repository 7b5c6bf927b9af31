"""Produce (key 0)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ProduceRequest", "3-13", flexible="9+").of(
    Field("transactional_id", STRING, nullable=True, default=None, entity=TRANSACTIONAL_ID),
    Field("acks", INT16),
    Field("timeout_ms", INT32),
    Field("topic_data", Array("TopicProduceData")).of(
        Field("name", STRING, "3-12", entity=TOPIC_NAME),
        Field("topic_id", UUID, "13+", own_entity=TOPIC_ID),
        Field("partition_data", Array("PartitionProduceData")).of(
            Field("index", INT32, own_entity=PARTITION),
            Field("records", RECORDS, nullable=True, own_entity=PRODUCER_ID),
        ),
    ),
)

RESPONSE = Message("ProduceResponse", "3-13", flexible="9+").of(
    Field("responses", Array("TopicProduceResponse")).of(
        Field("name", STRING, "3-12", entity=TOPIC_NAME),
        Field("topic_id", UUID, "13+", own_entity=TOPIC_ID),
        Field("partition_responses", Array("PartitionProduceResponse")).of(
            Field("index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("base_offset", INT64),
            Field("log_append_time_ms", INT64, default=-1),
            Field("log_start_offset", INT64, "5+", default=-1),
            Field("record_errors", Array("BatchIndexAndErrorMessage"), "8+").of(
                Field("batch_index", INT32),
                Field("batch_index_error_message", STRING, nullable=True, default=None),
            ),
            Field("error_message", STRING, "8+", nullable=True, default=None),
            Field("current_leader", Shape("LeaderIdAndEpoch"), "10+", tag=0).of(
                Field("leader_id", INT32, default=-1, entity=BROKER_ID),
                Field("leader_epoch", INT32, default=-1),
            ),
        ),
    ),
    Field("throttle_time_ms", INT32),
    Field("node_endpoints", Array("NodeEndpoint"), "10+", tag=0).of(
        Field("node_id", INT32, entity=BROKER_ID),
        Field("host", STRING),
        Field("port", INT32),
        Field("rack", STRING, nullable=True, default=None),
    ),
)
