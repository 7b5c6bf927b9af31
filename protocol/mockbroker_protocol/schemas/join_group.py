"""JoinGroup (key 11)."""

from mockbroker_protocol.declare import *

REQUEST = Message("JoinGroupRequest", "0-9", flexible="6+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("session_timeout_ms", INT32),
    Field("rebalance_timeout_ms", INT32, "1+", default=-1),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("group_instance_id", STRING, "5+", nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("protocol_type", STRING),
    Field("protocols", Array("JoinGroupRequestProtocol")).of(
        Field("name", STRING),
        Field("metadata", BYTES),
    ),
    Field("reason", STRING, "8+", nullable=True, default=None),
)

RESPONSE = Message("JoinGroupResponse", "0-9", flexible="6+").of(
    Field("throttle_time_ms", INT32, "2+"),
    Field("error_code", INT16),
    Field("generation_id", INT32, default=-1, own_entity=GENERATION),
    Field("protocol_type", STRING, "7+", nullable=True, default=None),
    Field("protocol_name", STRING, nullable="7+"),
    Field("leader", STRING, own_entity=MEMBER_ID),
    Field("skip_assignment", BOOL, "9+"),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("members", Array("JoinGroupResponseMember")).of(
        Field("member_id", STRING, own_entity=MEMBER_ID),
        Field(
            "group_instance_id", STRING, "5+", nullable=True, default=None, own_entity=INSTANCE_ID
        ),
        Field("metadata", BYTES),
    ),
)
