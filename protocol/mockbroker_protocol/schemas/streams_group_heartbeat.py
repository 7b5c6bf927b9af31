"""StreamsGroupHeartbeat (key 88)."""

from mockbroker_protocol.declare import *

KEY_VALUE = Shape(
    "KeyValue",
    Field("key", STRING),
    Field("value", STRING),
)

TOPIC_INFO = Shape(
    "TopicInfo",
    Field("name", STRING, entity=TOPIC_NAME),
    Field("partitions", INT32),
    Field("replication_factor", INT16),
    Field("topic_configs", Array(KEY_VALUE)),
)

TASK_IDS = Shape(
    "TaskIds",
    Field("subtopology_id", STRING),
    Field("partitions", Array(INT32)),
)

TASK_OFFSET = Shape(
    "TaskOffset",
    Field("subtopology_id", STRING),
    Field("partition", INT32),
    Field("offset", INT64),
)

REQUEST = Message(
    "StreamsGroupHeartbeatRequest",
    Field("group_id", STRING, entity=GROUP_ID),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("member_epoch", INT32, own_entity=GENERATION),
    Field("endpoint_information_epoch", INT32),
    Field("instance_id", STRING, nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("rack_id", STRING, nullable=True, default=None),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field(
        "topology",
        Shape(
            "Topology",
            Field("epoch", INT32),
            Field(
                "subtopologies",
                Array(
                    "Subtopology",
                    Field("subtopology_id", STRING),
                    Field("source_topics", Array(STRING), entity=TOPIC_NAME),
                    Field("source_topic_regex", Array(STRING)),
                    Field("state_changelog_topics", Array(TOPIC_INFO)),
                    Field("repartition_sink_topics", Array(STRING), entity=TOPIC_NAME),
                    Field("repartition_source_topics", Array(TOPIC_INFO)),
                    Field(
                        "copartition_groups",
                        Array(
                            "CopartitionGroup",
                            Field("source_topics", Array(INT16)),
                            Field("source_topic_regex", Array(INT16)),
                            Field("repartition_source_topics", Array(INT16)),
                        ),
                    ),
                ),
            ),
        ),
        nullable=True,
        default=None,
    ),
    Field("active_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("standby_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("warmup_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("process_id", STRING, nullable=True, default=None),
    Field(
        "user_endpoint",
        Shape(
            "Endpoint",
            Field("host", STRING),
            Field("port", UINT16),
        ),
        nullable=True,
        default=None,
    ),
    Field("client_tags", Array(KEY_VALUE), nullable=True, default=None),
    Field("task_offsets", Array(TASK_OFFSET), nullable=True, default=None),
    Field("task_end_offsets", Array(TASK_OFFSET), nullable=True, default=None),
    Field("shutdown_application", BOOL),
    versions="0",
    flexible="0+",
)

TOPIC_PARTITION = Shape(
    "TopicPartition",
    Field("topic", STRING, entity=TOPIC_NAME),
    Field("partitions", Array(INT32), own_entity=PARTITION),
)

RESPONSE = Message(
    "StreamsGroupHeartbeatResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("member_epoch", INT32, own_entity=GENERATION),
    Field("heartbeat_interval_ms", INT32),
    Field("acceptable_recovery_lag", INT32),
    Field("task_offset_interval_ms", INT32),
    Field(
        "status",
        Array(
            "Status",
            Field("status_code", INT8),
            Field("status_detail", STRING),
        ),
        nullable=True,
    ),
    Field("active_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("standby_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("warmup_tasks", Array(TASK_IDS), nullable=True, default=None),
    Field("endpoint_information_epoch", INT32),
    Field(
        "partitions_by_user_endpoint",
        Array(
            "EndpointToPartitions",
            Field(
                "user_endpoint",
                Shape(
                    "Endpoint",
                    Field("host", STRING),
                    Field("port", UINT16),
                ),
            ),
            Field("active_partitions", Array(TOPIC_PARTITION)),
            Field("standby_partitions", Array(TOPIC_PARTITION)),
        ),
        nullable=True,
        default=None,
    ),
    versions="0",
    flexible="0+",
)
