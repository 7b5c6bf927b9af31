"""Heartbeat (key 12)."""

from mockbroker_protocol.declare import *

REQUEST = Message("HeartbeatRequest", "0-4", flexible="4+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("generation_id", INT32, own_entity=GENERATION),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("group_instance_id", STRING, "3+", nullable=True, default=None, own_entity=INSTANCE_ID),
)

RESPONSE = Message("HeartbeatResponse", "0-4", flexible="4+").of(
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
)
