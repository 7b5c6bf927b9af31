"""ConsumerGroupDescribe (key 69)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ConsumerGroupDescribeRequest", "0-1", flexible="0+").of(
    Field("group_ids", Array(STRING), entity=GROUP_ID),
    Field("include_authorized_operations", BOOL),
)

ASSIGNMENT = Shape("Assignment").of(
    Field("topic_partitions", Array("TopicPartitions")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array(INT32), own_entity=PARTITION),
    ),
)

RESPONSE = Message("ConsumerGroupDescribeResponse", "0-1", flexible="0+").of(
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
            Field("instance_id", STRING, nullable=True, default=None, own_entity=INSTANCE_ID),
            Field("rack_id", STRING, nullable=True, default=None),
            Field("member_epoch", INT32, own_entity=GENERATION),
            Field("client_id", STRING),
            Field("client_host", STRING),
            Field("subscribed_topic_names", Array(STRING), entity=TOPIC_NAME),
            Field("subscribed_topic_regex", STRING, nullable=True, default=None),
            Field("assignment", ASSIGNMENT),
            Field("target_assignment", ASSIGNMENT),
            Field("member_type", INT8, "1+", default=-1),
        ),
        Field("authorized_operations", INT32, default=-2147483648),
    ),
)
