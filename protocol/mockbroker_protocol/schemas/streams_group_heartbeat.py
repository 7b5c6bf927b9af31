"""StreamsGroupHeartbeat (key 88)."""

from mockbroker_protocol.declare import *

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

TASK_IDS = Shape("TaskIds").of(
    Field("subtopology_id", STRING),
    Field("partitions", Array(INT32)),
)

TASK_OFFSET = Shape("TaskOffset").of(
    Field("subtopology_id", STRING),
    Field("partition", INT32),
    Field("offset", INT64),
)

REQUEST = Message("StreamsGroupHeartbeatRequest", "0", flexible="0+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("member_epoch", INT32, own_entity=GENERATION),
    Field("endpoint_information_epoch", INT32),
    Field("instance_id", STRING, nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("rack_id", STRING, nullable=True, default=None),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("topology", Shape("Topology"), nullable=True, default=None).of(
        Field("epoch", INT32),
        Field("subtopologies", Array("Subtopology")).of(
            Field("subtopology_id", STRING),
            Field("source_topics", Array(STRING), entity=TOPIC_NAME),
            Field("source_topic_regex", Array(STRING)),
            Field("state_changelog_topics", Array(TOPIC_INFO)),
            Field("repartition_sink_topics", Array(STRING), entity=TOPIC_NAME),
            Field("repartition_source_topics", Array(TOPIC_INFO)),
            Field("copartition_groups", Array("CopartitionGroup")).of(
                Field("source_topics", Array(INT16)),
                Field("source_topic_regex", Array(INT16)),
                Field("repartition_source_topics", Array(INT16)),
            ),
        ),
    ),
    Field("active_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("standby_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("warmup_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("process_id", STRING, nullable=True, default=None),
    Field("user_endpoint", Shape("Endpoint"), nullable=True, default=None).of(
        Field("host", STRING),
        Field("port", UINT16),
    ),
    Field("client_tags", Array(KEY_VALUE), nullable=True, default=None),
    Field("task_offsets", Array(TASK_OFFSET), nullable=True, default=None),
    Field("task_end_offsets", Array(TASK_OFFSET), nullable=True, default=None),
    Field("shutdown_application", BOOL),
)

TOPIC_PARTITION = Shape("TopicPartition").of(
    Field("topic", STRING, entity=TOPIC_NAME),
    Field("partitions", Array(INT32), own_entity=PARTITION),
)

RESPONSE = Message("StreamsGroupHeartbeatResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("member_epoch", INT32, own_entity=GENERATION),
    Field("heartbeat_interval_ms", INT32),
    Field("acceptable_recovery_lag", INT32),
    Field("task_offset_interval_ms", INT32),
    Field("status", Array("Status"), nullable=True).of(
        Field("status_code", INT8),
        Field("status_detail", STRING),
    ),
    Field("active_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("standby_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("warmup_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("endpoint_information_epoch", INT32),
    Field(
        "partitions_by_user_endpoint", Array("EndpointToPartitions"), nullable=True, default=None
    ).of(
        Field("user_endpoint", Shape("Endpoint")).of(
            Field("host", STRING),
            Field("port", UINT16),
        ),
        Field("active_partitions", Array(TOPIC_PARTITION)),
        Field("standby_partitions", Array(TOPIC_PARTITION)),
    ),
)
