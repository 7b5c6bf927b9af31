"""AddOffsetsToTxn (key 25)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AddOffsetsToTxnRequest", "0-4", flexible="3+").of(
    Field("transactional_id", STRING, entity=TRANSACTIONAL_ID),
    Field("producer_id", INT64, entity=PRODUCER_ID),
    Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
    Field("group_id", STRING, entity=GROUP_ID),
)

RESPONSE = Message("AddOffsetsToTxnResponse", "0-4", flexible="3+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
)
