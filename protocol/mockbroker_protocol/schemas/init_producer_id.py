"""InitProducerId (key 22)."""

from mockbroker_protocol.declare import *

REQUEST = Message("InitProducerIdRequest", "0-6", flexible="2+").of(
    Field("transactional_id", STRING, nullable=True, entity=TRANSACTIONAL_ID),
    Field("transaction_timeout_ms", INT32),
    Field("producer_id", INT64, "3+", default=-1, entity=PRODUCER_ID),
    Field("producer_epoch", INT16, "3+", default=-1, own_entity=PRODUCER_EPOCH),
    Field("enable2_pc", BOOL, "6+"),
    Field("keep_prepared_txn", BOOL, "6+"),
)

RESPONSE = Message("InitProducerIdResponse", "0-6", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("producer_id", INT64, default=-1, entity=PRODUCER_ID),
    Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
    Field("ongoing_txn_producer_id", INT64, "6+", default=-1, entity=PRODUCER_ID),
    Field("ongoing_txn_producer_epoch", INT16, "6+", default=-1, own_entity=PRODUCER_EPOCH),
)
