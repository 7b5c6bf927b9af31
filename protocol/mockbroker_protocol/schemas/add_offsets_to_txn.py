"""AddOffsetsToTxn (key 25)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Field, Message

REQUEST = Message(
    "AddOffsetsToTxnRequest",
    Field("transactional_id", STRING),
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
    Field("group_id", STRING),
    versions="0-4",
    flexible="3+",
)

RESPONSE = Message(
    "AddOffsetsToTxnResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    versions="0-4",
    flexible="3+",
)
