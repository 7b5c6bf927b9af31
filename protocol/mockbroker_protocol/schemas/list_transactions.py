"""ListTransactions (key 66)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "ListTransactionsRequest",
    Field("state_filters", Array(STRING)),
    Field("producer_id_filters", Array(INT64)),
    Field("duration_filter", INT64, "1+", default=-1),
    Field("transactional_id_pattern", STRING, "2+", nullable=True, default=None),
    versions="0-2",
    flexible="0+",
)

RESPONSE = Message(
    "ListTransactionsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("unknown_state_filters", Array(STRING)),
    Field(
        "transaction_states",
        Array(
            Shape(
                "TransactionState",
                Field("transactional_id", STRING),
                Field("producer_id", INT64),
                Field("transaction_state", STRING),
            )
        ),
    ),
    versions="0-2",
    flexible="0+",
)
