"""DeleteGroups (key 42)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DeleteGroupsRequest", "0-2", flexible="2+").of(
    Field("groups_names", Array(STRING), entity=GROUP_ID),
)

RESPONSE = Message("DeleteGroupsResponse", "0-2", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("results", Array("DeletableGroupResult")).of(
        Field("group_id", STRING, entity=GROUP_ID),
        Field("error_code", INT16),
    ),
)
