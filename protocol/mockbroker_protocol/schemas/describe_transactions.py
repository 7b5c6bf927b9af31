"""DescribeTransactions (key 65)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeTransactionsRequest", "0", flexible="0+").of(
    Field("transactional_ids", Array(STRING), entity=TRANSACTIONAL_ID),
)

RESPONSE = Message("DescribeTransactionsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("transaction_states", Array("TransactionState")).of(
        Field("error_code", INT16),
        Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
        Field("transaction_state", STRING),
        Field("transaction_timeout_ms", INT32),
        Field("transaction_start_time_ms", INT64),
        Field("producer_id", INT64, entity=PRODUCER_ID),
        Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
        Field("topics", Array("TopicData")).of(
            Field("topic", STRING, entity=TOPIC_NAME),
            Field("partitions", Array(INT32), own_entity=PARTITION),
        ),
    ),
)
