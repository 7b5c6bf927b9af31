"""AddPartitionsToTxn (key 24)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    Array,
    Field,
    Message,
    Shape,
)

ADD_PARTITIONS_TO_TXN_TOPIC = Shape(
    "AddPartitionsToTxnTopic",
    Field("name", STRING),
    Field("partitions", Array(INT32)),
)

REQUEST = Message(
    "AddPartitionsToTxnRequest",
    Field(
        "transactions",
        Array(
            Shape(
                "AddPartitionsToTxnTransaction",
                Field("transactional_id", STRING),
                Field("producer_id", INT64),
                Field("producer_epoch", INT16),
                Field("verify_only", BOOL),
                Field("topics", Array(ADD_PARTITIONS_TO_TXN_TOPIC)),
            )
        ),
        "4+",
    ),
    Field("v3_and_below_transactional_id", STRING, "0-3"),
    Field("v3_and_below_producer_id", INT64, "0-3"),
    Field("v3_and_below_producer_epoch", INT16, "0-3"),
    Field("v3_and_below_topics", Array(ADD_PARTITIONS_TO_TXN_TOPIC), "0-3"),
    versions="0-5",
    flexible="3+",
)

ADD_PARTITIONS_TO_TXN_TOPIC_RESULT = Shape(
    "AddPartitionsToTxnTopicResult",
    Field("name", STRING),
    Field(
        "results_by_partition",
        Array(
            Shape(
                "AddPartitionsToTxnPartitionResult",
                Field("partition_index", INT32),
                Field("partition_error_code", INT16),
            )
        ),
    ),
)

RESPONSE = Message(
    "AddPartitionsToTxnResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "4+"),
    Field(
        "results_by_transaction",
        Array(
            Shape(
                "AddPartitionsToTxnResult",
                Field("transactional_id", STRING),
                Field("topic_results", Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT)),
            )
        ),
        "4+",
    ),
    Field("results_by_topic_v3_and_below", Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT), "0-3"),
    versions="0-5",
    flexible="3+",
)
