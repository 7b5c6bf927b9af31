"""Keys and values of the records in `__transaction_state`."""

from mockbroker_protocol.declare import *

TRANSACTION_LOG_KEY = Message("TransactionLogKey", "0", flexible="none").of(
    Field("transactional_id", STRING),
)

TRANSACTION_LOG_VALUE = Message("TransactionLogValue", "0-1", flexible="1+").of(
    Field("producer_id", INT64),
    Field("previous_producer_id", INT64, "1+", tag=0, default=-1),
    Field("next_producer_id", INT64, "1+", tag=1, default=-1),
    Field("producer_epoch", INT16),
    Field("next_producer_epoch", INT16, "1+", tag=3, default=-1),
    Field("transaction_timeout_ms", INT32),
    Field("transaction_status", INT8),
    Field("transaction_partitions", Array("PartitionsSchema"), nullable=True).of(
        Field("topic", STRING),
        Field("partition_ids", Array(INT32)),
    ),
    Field("transaction_last_update_timestamp_ms", INT64),
    Field("transaction_start_timestamp_ms", INT64),
    Field("client_transaction_version", INT16, "1+", tag=2),
)

MESSAGES = (
    TRANSACTION_LOG_KEY,
    TRANSACTION_LOG_VALUE,
)
