"""CreateTopics (key 19)."""

from mockbroker_protocol.declare import *

REQUEST = Message("CreateTopicsRequest", "2-7", flexible="5+").of(
    Field("topics", Array("CreatableTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("num_partitions", INT32),
        Field("replication_factor", INT16),
        Field("assignments", Array("CreatableReplicaAssignment")).of(
            Field("partition_index", INT32),
            Field("broker_ids", Array(INT32), entity=BROKER_ID),
        ),
        Field("configs", Array("CreatableTopicConfig")).of(
            Field("name", STRING),
            Field("value", STRING, nullable=True),
        ),
    ),
    Field("timeout_ms", INT32, default=60000),
    Field("validate_only", BOOL),
)

RESPONSE = Message("CreateTopicsResponse", "2-7", flexible="5+").of(
    Field("throttle_time_ms", INT32),
    Field("topics", Array("CreatableTopicResult")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("topic_id", UUID, "7+", own_entity=TOPIC_ID),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("topic_config_error_code", INT16, "5+", tag=0),
        Field("num_partitions", INT32, "5+", default=-1),
        Field("replication_factor", INT16, "5+", default=-1),
        Field("configs", Array("CreatableTopicConfigs"), "5+", nullable=True).of(
            Field("name", STRING),
            Field("value", STRING, nullable=True),
            Field("read_only", BOOL),
            Field("config_source", INT8, default=-1),
            Field("is_sensitive", BOOL),
        ),
    ),
)
