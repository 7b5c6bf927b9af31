"""DescribeGroups (key 15)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeGroupsRequest", "0-6", flexible="5+").of(
    Field("groups", Array(STRING), entity=GROUP_ID),
    Field("include_authorized_operations", BOOL, "3+"),
)

RESPONSE = Message("DescribeGroupsResponse", "0-6", flexible="5+").of(
    Field("throttle_time_ms", INT32, "1+"),
    Field("groups", Array("DescribedGroup")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, "6+", nullable=True, default=None),
        Field("group_id", STRING, entity=GROUP_ID),
        Field("group_state", STRING),
        Field("protocol_type", STRING),
        Field("protocol_data", STRING),
        Field("members", Array("DescribedGroupMember")).of(
            Field("member_id", STRING, own_entity=MEMBER_ID),
            Field(
                "group_instance_id",
                STRING,
                "4+",
                nullable=True,
                default=None,
                own_entity=INSTANCE_ID,
            ),
            Field("client_id", STRING),
            Field("client_host", STRING),
            Field("member_metadata", BYTES),
            Field("member_assignment", BYTES),
        ),
        Field("authorized_operations", INT32, "3+", default=-2147483648),
    ),
)
