"""ListGroups (key 16)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ListGroupsRequest", "0-5", flexible="3+").of(
    Field("states_filter", Array(STRING), "4+"),
    Field("types_filter", Array(STRING), "5+"),
)

RESPONSE = Message("ListGroupsResponse", "0-5", flexible="3+").of(
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16),
    Field("groups", Array("ListedGroup")).of(
        Field("group_id", STRING, entity=GROUP_ID),
        Field("protocol_type", STRING),
        Field("group_state", STRING, "4+"),
        Field("group_type", STRING, "5+"),
    ),
)
