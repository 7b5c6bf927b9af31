"""StreamsGroupDescribe (key 89)."""

from mockbroker_protocol.declare import *

REQUEST = Message("StreamsGroupDescribeRequest", "0", flexible="0+").of(
    Field("group_ids", Array(STRING), entity=GROUP_ID),
    Field("include_authorized_operations", BOOL),
)

KEY_VALUE = Shape("KeyValue").of(
    Field("key", STRING),
    Field("value", STRING),
)

TOPIC_INFO = Shape("TopicInfo").of(
    Field("name", STRING, entity=TOPIC_NAME),
    Field("partitions", INT32),
    Field("replication_factor", INT16),
    Field("topic_configs", Array(KEY_VALUE)),
)

TASK_OFFSET = Shape("TaskOffset").of(
    Field("subtopology_id", STRING),
    Field("partition", INT32),
    Field("offset", INT64),
)

TASK_IDS = Shape("TaskIds").of(
    Field("subtopology_id", STRING),
    Field("partitions", Array(INT32)),
)

ASSIGNMENT = Shape("Assignment").of(
    Field("active_tasks", Array(TASK_IDS)),
    Field("standby_tasks", Array(TASK_IDS)),
    Field("warmup_tasks", Array(TASK_IDS)),
)

RESPONSE = Message("StreamsGroupDescribeResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("groups", Array("DescribedGroup")).of(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True, default=None),
        Field("group_id", STRING, entity=GROUP_ID),
        Field("group_state", STRING),
        Field("group_epoch", INT32),
        Field("assignment_epoch", INT32),
        Field("topology", Shape("Topology"), nullable=True, default=None).of(
            Field("epoch", INT32),
            Field("subtopologies", Array("Subtopology"), nullable=True, default=None).of(
                Field("subtopology_id", STRING),
                Field("source_topics", Array(STRING), entity=TOPIC_NAME),
                Field("repartition_sink_topics", Array(STRING), entity=TOPIC_NAME),
                Field("state_changelog_topics", Array(TOPIC_INFO)),
                Field("repartition_source_topics", Array(TOPIC_INFO)),
            ),
        ),
        Field("members", Array("Member")).of(
            Field("member_id", STRING, own_entity=MEMBER_ID),
            Field("member_epoch", INT32, own_entity=GENERATION),
            Field("instance_id", STRING, nullable=True, default=None, own_entity=INSTANCE_ID),
            Field("rack_id", STRING, nullable=True, default=None),
            Field("client_id", STRING),
            Field("client_host", STRING),
            Field("topology_epoch", INT32),
            Field("process_id", STRING),
            Field("user_endpoint", Shape("Endpoint"), nullable=True, default=None).of(
                Field("host", STRING),
                Field("port", UINT16),
            ),
            Field("client_tags", Array(KEY_VALUE)),
            Field("task_offsets", Array(TASK_OFFSET)),
            Field("task_end_offsets", Array(TASK_OFFSET)),
            Field("assignment", ASSIGNMENT),
            Field("target_assignment", ASSIGNMENT),
            Field("is_classic", BOOL),
        ),
        Field("authorized_operations", INT32, default=-2147483648),
    ),
)
