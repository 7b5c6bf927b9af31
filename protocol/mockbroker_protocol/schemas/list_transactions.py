"""ListTransactions (key 66)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ListTransactionsRequest", "0-2", flexible="0+").of(
    Field("state_filters", Array(STRING)),
    Field("producer_id_filters", Array(INT64), entity=PRODUCER_ID),
    Field("duration_filter", INT64, "1+", default=-1),
    Field("transactional_id_pattern", STRING, "2+", nullable=True, default=None),
)

RESPONSE = Message("ListTransactionsResponse", "0-2", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("unknown_state_filters", Array(STRING)),
    Field("transaction_states", Array("TransactionState")).of(
        Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
        Field("producer_id", INT64, entity=PRODUCER_ID),
        Field("transaction_state", STRING),
    ),
)
