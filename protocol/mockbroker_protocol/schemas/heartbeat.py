"""Heartbeat (key 12)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Field, Message

REQUEST = Message(
    "HeartbeatRequest",
    Field("group_id", STRING),
    Field("generation_id", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "3+", nullable=True, default=None),
    versions="0-4",
    flexible="4+",
)

RESPONSE = Message(
    "HeartbeatResponse",
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
    versions="0-4",
    flexible="4+",
)
