"""AddPartitionsToTxn (key 24)."""

from mockbroker_protocol.declare import *

ADD_PARTITIONS_TO_TXN_TOPIC = Shape("AddPartitionsToTxnTopic").of(
    Field("name", STRING, entity=TOPIC_NAME),
    Field("partitions", Array(INT32), own_entity=PARTITION),
)

REQUEST = Message("AddPartitionsToTxnRequest", "0-5", flexible="3+").of(
    Field("transactions", Array("AddPartitionsToTxnTransaction"), "4+").of(
        Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
        Field("producer_id", INT64, entity=PRODUCER_ID),
        Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
        Field("verify_only", BOOL),
        Field("topics", Array(ADD_PARTITIONS_TO_TXN_TOPIC)),
    ),
    Field("v3_and_below_transactional_id", STRING, "0-3", entity=TRANSACTIONAL_ID),
    Field("v3_and_below_producer_id", INT64, "0-3", entity=PRODUCER_ID),
    Field("v3_and_below_producer_epoch", INT16, "0-3", own_entity=PRODUCER_EPOCH),
    Field("v3_and_below_topics", Array(ADD_PARTITIONS_TO_TXN_TOPIC), "0-3"),
)

ADD_PARTITIONS_TO_TXN_TOPIC_RESULT = Shape("AddPartitionsToTxnTopicResult").of(
    Field("name", STRING, entity=TOPIC_NAME),
    Field("results_by_partition", Array("AddPartitionsToTxnPartitionResult")).of(
        Field("partition_index", INT32, own_entity=PARTITION),
        Field("partition_error_code", INT16),
    ),
)

RESPONSE = Message("AddPartitionsToTxnResponse", "0-5", flexible="3+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "4+"),
    Field("results_by_transaction", Array("AddPartitionsToTxnResult"), "4+").of(
        Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
        Field("topic_results", Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT)),
    ),
    Field("results_by_topic_v3_and_below", Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT), "0-3"),
)
