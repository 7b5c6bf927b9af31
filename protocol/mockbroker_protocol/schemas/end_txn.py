"""EndTxn (key 26)."""

from mockbroker_protocol.declare import *

REQUEST = Message("EndTxnRequest", "0-5", flexible="3+").of(
    Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
    Field("producer_id", INT64, entity=PRODUCER_ID),
    Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
    Field("committed", BOOL),
)

RESPONSE = Message("EndTxnResponse", "0-5", flexible="3+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("producer_id", INT64, "5+", default=-1, entity=PRODUCER_ID),
    Field("producer_epoch", INT16, "5+", default=-1, own_entity=PRODUCER_EPOCH),
)
