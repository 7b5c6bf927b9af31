"""Keys and values of the records in `__consumer_offsets`."""

from mockbroker_protocol.declare import *

OFFSET_COMMIT_KEY = Message("OffsetCommitKey", "0", flexible="none").of(
    Field("group", STRING),
    Field("topic", STRING),
    Field("partition", INT32),
)

OFFSET_COMMIT_VALUE = Message("OffsetCommitValue", "0-4", flexible="4+").of(
    Field("offset", INT64),
    Field("leader_epoch", INT32, "3+", default=-1),
    Field("metadata", STRING),
    Field("commit_timestamp", INT64),
    Field("expire_timestamp", INT64, "1", default=-1),
    Field("topic_id", UUID, "4+", tag=0),
)

GROUP_METADATA_KEY = Message("GroupMetadataKey", "0", flexible="none").of(
    Field("group", STRING),
)

GROUP_METADATA_VALUE = Message("GroupMetadataValue", "0-4", flexible="4+").of(
    Field("protocol_type", STRING),
    Field("generation", INT32),
    Field("protocol", STRING, nullable=True),
    Field("leader", STRING, nullable=True),
    Field("current_state_timestamp", INT64, "2+", default=-1),
    Field("members", Array("MemberMetadata")).of(
        Field("member_id", STRING),
        Field("group_instance_id", STRING, "3+", nullable=True, default=None),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("rebalance_timeout", INT32, "1+", default=-1),
        Field("session_timeout", INT32),
        Field("subscription", BYTES),
        Field("assignment", BYTES),
    ),
)

CONSUMER_GROUP_METADATA_KEY = Message("ConsumerGroupMetadataKey", "0", flexible="none").of(
    Field("group_id", STRING),
)

CONSUMER_GROUP_METADATA_VALUE = Message("ConsumerGroupMetadataValue", "0", flexible="0+").of(
    Field("epoch", INT32),
    Field("metadata_hash", INT64, tag=0),
)

CONSUMER_GROUP_PARTITION_METADATA_KEY = Message(
    "ConsumerGroupPartitionMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
)

CONSUMER_GROUP_PARTITION_METADATA_VALUE = Message(
    "ConsumerGroupPartitionMetadataValue", "0", flexible="0+"
).of(
    Field("topics", Array("TopicMetadata")).of(
        Field("topic_id", UUID),
        Field("topic_name", STRING),
        Field("num_partitions", INT32),
        Field("partition_metadata", Array("PartitionMetadata")).of(
            Field("partition", INT32),
            Field("racks", Array(STRING)),
        ),
    ),
)

CONSUMER_GROUP_MEMBER_METADATA_KEY = Message(
    "ConsumerGroupMemberMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE = Message(
    "ConsumerGroupMemberMetadataValue", "0", flexible="0+"
).of(
    Field("instance_id", STRING, nullable=True),
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("subscribed_topic_names", Array(STRING)),
    Field("subscribed_topic_regex", STRING, nullable=True),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("server_assignor", STRING, nullable=True),
    Field("classic_member_metadata", Shape("ClassicMemberMetadata"), nullable=True, tag=0).of(
        Field("session_timeout_ms", INT32),
        Field("supported_protocols", Array("ClassicProtocol")).of(
            Field("name", STRING),
            Field("metadata", BYTES),
        ),
    ),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Message(
    "ConsumerGroupTargetAssignmentMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Message(
    "ConsumerGroupTargetAssignmentMetadataValue", "0", flexible="0+"
).of(
    Field("assignment_epoch", INT32),
    Field("assignment_timestamp", INT64, tag=0),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Message(
    "ConsumerGroupTargetAssignmentMemberKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

TOPIC_PARTITION = Shape("TopicPartition").of(
    Field("topic_id", UUID),
    Field("partitions", Array(INT32)),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Message(
    "ConsumerGroupTargetAssignmentMemberValue", "0", flexible="0+"
).of(
    Field("topic_partitions", Array(TOPIC_PARTITION)),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Message(
    "ConsumerGroupCurrentMemberAssignmentKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

TOPIC_PARTITIONS = Shape("TopicPartitions").of(
    Field("topic_id", UUID),
    Field("partitions", Array(INT32)),
    Field("assignment_epochs", Array(INT32), nullable=True, tag=0),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Message(
    "ConsumerGroupCurrentMemberAssignmentValue", "0", flexible="0+"
).of(
    Field("member_epoch", INT32),
    Field("previous_member_epoch", INT32),
    Field("state", INT8),
    Field("assigned_partitions", Array(TOPIC_PARTITIONS)),
    Field("partitions_pending_revocation", Array(TOPIC_PARTITIONS)),
)

CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = Message(
    "ConsumerGroupRegularExpressionKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("regular_expression", STRING),
)

CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = Message(
    "ConsumerGroupRegularExpressionValue", "0", flexible="0+"
).of(
    Field("topics", Array(STRING)),
    Field("version", INT64),
    Field("timestamp", INT64),
)

SHARE_GROUP_MEMBER_METADATA_KEY = Message("ShareGroupMemberMetadataKey", "0", flexible="none").of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

SHARE_GROUP_MEMBER_METADATA_VALUE = Message("ShareGroupMemberMetadataValue", "0", flexible="0+").of(
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("subscribed_topic_names", Array(STRING)),
)

SHARE_GROUP_METADATA_KEY = Message("ShareGroupMetadataKey", "0", flexible="none").of(
    Field("group_id", STRING),
)

SHARE_GROUP_METADATA_VALUE = Message("ShareGroupMetadataValue", "0", flexible="0+").of(
    Field("epoch", INT32),
    Field("metadata_hash", INT64),
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Message(
    "ShareGroupTargetAssignmentMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Message(
    "ShareGroupTargetAssignmentMetadataValue", "0", flexible="0+"
).of(
    Field("assignment_epoch", INT32),
    Field("assignment_timestamp", INT64, tag=0),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Message(
    "ShareGroupTargetAssignmentMemberKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Message(
    "ShareGroupTargetAssignmentMemberValue", "0", flexible="0+"
).of(
    Field("topic_partitions", Array(TOPIC_PARTITION)),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Message(
    "ShareGroupCurrentMemberAssignmentKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Message(
    "ShareGroupCurrentMemberAssignmentValue", "0", flexible="0+"
).of(
    Field("member_epoch", INT32),
    Field("previous_member_epoch", INT32),
    Field("state", INT8),
    Field("assigned_partitions", Array("TopicPartitions")).of(
        Field("topic_id", UUID),
        Field("partitions", Array(INT32)),
    ),
)

SHARE_GROUP_STATE_PARTITION_METADATA_KEY = Message(
    "ShareGroupStatePartitionMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
)

TOPIC_PARTITIONS_INFO = Shape("TopicPartitionsInfo").of(
    Field("topic_id", UUID),
    Field("topic_name", STRING),
    Field("partitions", Array(INT32)),
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = Message(
    "ShareGroupStatePartitionMetadataValue", "0", flexible="0+"
).of(
    Field("initializing_topics", Array(TOPIC_PARTITIONS_INFO)),
    Field("initialized_topics", Array(TOPIC_PARTITIONS_INFO)),
    Field("deleting_topics", Array("TopicInfo")).of(
        Field("topic_id", UUID),
        Field("topic_name", STRING),
    ),
)

STREAMS_GROUP_METADATA_KEY = Message("StreamsGroupMetadataKey", "0", flexible="none").of(
    Field("group_id", STRING),
)

STREAMS_GROUP_METADATA_VALUE = Message("StreamsGroupMetadataValue", "0", flexible="0+").of(
    Field("epoch", INT32),
    Field("metadata_hash", INT64),
    Field("validated_topology_epoch", INT32, tag=0, default=-1),
    Field("last_assignment_configs", Array("LastAssignmentConfig"), nullable=True, tag=1).of(
        Field("key", STRING),
        Field("value", STRING),
    ),
)

STREAMS_GROUP_MEMBER_METADATA_KEY = Message(
    "StreamsGroupMemberMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

STREAMS_GROUP_MEMBER_METADATA_VALUE = Message(
    "StreamsGroupMemberMetadataValue", "0", flexible="0+"
).of(
    Field("instance_id", STRING, nullable=True),
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("topology_epoch", INT32),
    Field("process_id", STRING),
    Field("user_endpoint", Shape("Endpoint"), nullable=True, default=None).of(
        Field("host", STRING),
        Field("port", UINT16),
    ),
    Field("client_tags", Array("KeyValue")).of(
        Field("key", STRING),
        Field("value", STRING),
    ),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = Message(
    "StreamsGroupTargetAssignmentMetadataKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Message(
    "StreamsGroupTargetAssignmentMetadataValue", "0", flexible="0+"
).of(
    Field("assignment_epoch", INT32),
    Field("assignment_timestamp", INT64, tag=0),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = Message(
    "StreamsGroupTargetAssignmentMemberKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

TARGET_TASK_IDS = Shape("TaskIds").of(
    Field("subtopology_id", STRING),
    Field("partitions", Array(INT32)),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Message(
    "StreamsGroupTargetAssignmentMemberValue", "0", flexible="0+"
).of(
    Field("active_tasks", Array(TARGET_TASK_IDS)),
    Field("standby_tasks", Array(TARGET_TASK_IDS)),
    Field("warmup_tasks", Array(TARGET_TASK_IDS)),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = Message(
    "StreamsGroupCurrentMemberAssignmentKey", "0", flexible="none"
).of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

CURRENT_TASK_IDS = Shape("TaskIds").of(
    Field("subtopology_id", STRING),
    Field("partitions", Array(INT32)),
    Field("assignment_epochs", Array(INT32), nullable=True, tag=0),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Message(
    "StreamsGroupCurrentMemberAssignmentValue", "0", flexible="0+"
).of(
    Field("member_epoch", INT32),
    Field("previous_member_epoch", INT32),
    Field("state", INT8),
    Field("active_tasks", Array(CURRENT_TASK_IDS)),
    Field("standby_tasks", Array(CURRENT_TASK_IDS)),
    Field("warmup_tasks", Array(CURRENT_TASK_IDS)),
    Field("active_tasks_pending_revocation", Array(CURRENT_TASK_IDS)),
    Field("standby_tasks_pending_revocation", Array(CURRENT_TASK_IDS)),
    Field("warmup_tasks_pending_revocation", Array(CURRENT_TASK_IDS)),
)

STREAMS_GROUP_TOPOLOGY_KEY = Message("StreamsGroupTopologyKey", "0", flexible="none").of(
    Field("group_id", STRING),
)

TOPIC_INFO = Shape("TopicInfo").of(
    Field("name", STRING),
    Field("partitions", INT32),
    Field("replication_factor", INT16),
    Field("topic_configs", Array("TopicConfig")).of(
        Field("key", STRING),
        Field("value", STRING),
    ),
)

STREAMS_GROUP_TOPOLOGY_VALUE = Message("StreamsGroupTopologyValue", "0", flexible="0+").of(
    Field("epoch", INT32),
    Field("subtopologies", Array("Subtopology")).of(
        Field("subtopology_id", STRING),
        Field("source_topics", Array(STRING)),
        Field("source_topic_regex", Array(STRING)),
        Field("state_changelog_topics", Array(TOPIC_INFO)),
        Field("repartition_sink_topics", Array(STRING)),
        Field("repartition_source_topics", Array(TOPIC_INFO)),
        Field("copartition_groups", Array("CopartitionGroup")).of(
            Field("source_topics", Array(INT16)),
            Field("source_topic_regex", Array(INT16)),
            Field("repartition_source_topics", Array(INT16)),
        ),
    ),
)

MESSAGES = (
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
    GROUP_METADATA_KEY,
    GROUP_METADATA_VALUE,
    CONSUMER_GROUP_METADATA_KEY,
    CONSUMER_GROUP_METADATA_VALUE,
    CONSUMER_GROUP_PARTITION_METADATA_KEY,
    CONSUMER_GROUP_PARTITION_METADATA_VALUE,
    CONSUMER_GROUP_MEMBER_METADATA_KEY,
    CONSUMER_GROUP_MEMBER_METADATA_VALUE,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    CONSUMER_GROUP_REGULAR_EXPRESSION_KEY,
    CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE,
    SHARE_GROUP_MEMBER_METADATA_KEY,
    SHARE_GROUP_MEMBER_METADATA_VALUE,
    SHARE_GROUP_METADATA_KEY,
    SHARE_GROUP_METADATA_VALUE,
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    SHARE_GROUP_STATE_PARTITION_METADATA_KEY,
    SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
    STREAMS_GROUP_METADATA_KEY,
    STREAMS_GROUP_METADATA_VALUE,
    STREAMS_GROUP_MEMBER_METADATA_KEY,
    STREAMS_GROUP_MEMBER_METADATA_VALUE,
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    STREAMS_GROUP_TOPOLOGY_KEY,
    STREAMS_GROUP_TOPOLOGY_VALUE,
)
