"""LeaveGroup (key 13)."""

from mockbroker_protocol.declare import *

REQUEST = Message("LeaveGroupRequest", "0-5", flexible="4+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("member_id", STRING, "0-2", own_entity=MEMBER_ID),
    Field("members", Array("MemberIdentity"), "3+").of(
        Field("member_id", STRING, own_entity=MEMBER_ID),
        Field("group_instance_id", STRING, nullable=True, default=None, own_entity=INSTANCE_ID),
        Field("reason", STRING, "5+", nullable=True, default=None),
    ),
)

RESPONSE = Message("LeaveGroupResponse", "0-5", flexible="4+").of(
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
    Field("members", Array("MemberResponse"), "3+").of(
        Field("member_id", STRING, own_entity=MEMBER_ID),
        Field("group_instance_id", STRING, nullable=True, own_entity=INSTANCE_ID),
        Field("error_code", INT16),
    ),
)
