"""DeleteGroups (key 42)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DeleteGroupsRequest",
    Field("groups_names", Array(STRING), entity=GROUP_ID),
    versions="0-2",
    flexible="2+",
)

RESPONSE = Message(
    "DeleteGroupsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            "DeletableGroupResult",
            Field("group_id", STRING, entity=GROUP_ID),
            Field("error_code", INT16),
        ),
    ),
    versions="0-2",
    flexible="2+",
)
