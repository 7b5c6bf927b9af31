"""EndTxn (key 26)."""

from __future__ import annotations

from mockbroker_protocol.declare import BOOL, INT16, INT32, INT64, STRING, Field, Message

REQUEST = Message(
    "EndTxnRequest",
    Field("transactional_id", STRING),
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
    Field("committed", BOOL),
    versions="0-5",
    flexible="3+",
)

RESPONSE = Message(
    "EndTxnResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("producer_id", INT64, "5+", default=-1),
    Field("producer_epoch", INT16, "5+", default=-1),
    versions="0-5",
    flexible="3+",
)
