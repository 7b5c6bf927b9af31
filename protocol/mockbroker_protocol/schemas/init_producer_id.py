"""InitProducerId (key 22)."""

from __future__ import annotations

from mockbroker_protocol.declare import BOOL, INT16, INT32, INT64, STRING, Field, Message

REQUEST = Message(
    "InitProducerIdRequest",
    Field("transactional_id", STRING, nullable=True),
    Field("transaction_timeout_ms", INT32),
    Field("producer_id", INT64, "3+", default=-1),
    Field("producer_epoch", INT16, "3+", default=-1),
    Field("enable2_pc", BOOL, "6+"),
    Field("keep_prepared_txn", BOOL, "6+"),
    versions="0-6",
    flexible="2+",
)

RESPONSE = Message(
    "InitProducerIdResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("producer_id", INT64, default=-1),
    Field("producer_epoch", INT16),
    Field("ongoing_txn_producer_id", INT64, "6+", default=-1),
    Field("ongoing_txn_producer_epoch", INT16, "6+", default=-1),
    versions="0-6",
    flexible="2+",
)
