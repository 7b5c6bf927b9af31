"""SyncGroup (key 14)."""

from mockbroker_protocol.declare import *

REQUEST = Message("SyncGroupRequest", "0-5", flexible="4+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("generation_id", INT32, own_entity=GENERATION),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("group_instance_id", STRING, "3+", nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("protocol_type", STRING, "5+", nullable=True, default=None),
    Field("protocol_name", STRING, "5+", nullable=True, default=None),
    Field("assignments", Array("SyncGroupRequestAssignment")).of(
        Field("member_id", STRING),
        Field("assignment", BYTES),
    ),
)

RESPONSE = Message("SyncGroupResponse", "0-5", flexible="4+").of(
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
    Field("protocol_type", STRING, "5+", nullable=True, default=None),
    Field("protocol_name", STRING, "5+", nullable=True, default=None),
    Field("assignment", BYTES),
)
