"""DescribeTransactions (key 65)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "DescribeTransactionsRequest",
    Field("transactional_ids", Array(STRING)),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeTransactionsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "transaction_states",
        Array(
            Shape(
                "TransactionState",
                Field("error_code", INT16),
                Field("transactional_id", STRING),
                Field("transaction_state", STRING),
                Field("transaction_timeout_ms", INT32),
                Field("transaction_start_time_ms", INT64),
                Field("producer_id", INT64),
                Field("producer_epoch", INT16),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "TopicData",
                            Field("topic", STRING),
                            Field("partitions", Array(INT32)),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)
