"""ShareGroupDescribe (key 77)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ShareGroupDescribeRequest", "1", flexible="1+").of(
    Field("group_ids", Array(STRING), entity=GROUP_ID),
    Field("include_authorized_operations", BOOL),
)

RESPONSE = Message("ShareGroupDescribeResponse", "1", flexible="1+").of(
    Field("throttle_time_ms", INT32),
    Field("groups", Array("DescribedGroup")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True, default=None),
        Field("group_id", STRING, entity=GROUP_ID),
        Field("group_state", STRING),
        Field("group_epoch", INT32),
        Field("assignment_epoch", INT32),
        Field("assignor_name", STRING),
        Field("members", Array("Member")).of(
            Field("member_id", STRING, own_entity=MEMBER_ID),
            Field("rack_id", STRING, nullable=True, default=None),
            Field("member_epoch", INT32, own_entity=GENERATION),
            Field("client_id", STRING),
            Field("client_host", STRING),
            Field("subscribed_topic_names", Array(STRING), entity=TOPIC_NAME),
            Field("assignment", Shape("Assignment")).of(
                Field("topic_partitions", Array("TopicPartitions")).of(
                    Field("topic_id", UUID, own_entity=TOPIC_ID),
                    Field("topic_name", STRING, entity=TOPIC_NAME),
                    Field("partitions", Array(INT32), own_entity=PARTITION),
                ),
            ),
        ),
        Field("authorized_operations", INT32, default=-2147483648),
    ),
)
