"""Metadata (key 3)."""

from mockbroker_protocol.declare import *

REQUEST = Message("MetadataRequest", "0-13", flexible="9+").of(
    Field("topics", Array("MetadataRequestTopic"), nullable="1+", null_is_all=True).of(
        Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
        Field("name", STRING, nullable="10+", entity=TOPIC_NAME),
    ),
    Field("allow_auto_topic_creation", BOOL, "4+", default=True),
    Field("include_cluster_authorized_operations", BOOL, "8-10"),
    Field("include_topic_authorized_operations", BOOL, "8+"),
)

RESPONSE = Message("MetadataResponse", "0-13", flexible="9+").of(
    Field("throttle_time_ms", INT32, "3+"),
    Field("brokers", Array("MetadataResponseBroker")).of(
        Field("node_id", INT32, entity=BROKER_ID),
        Field("host", STRING),
        Field("port", INT32),
        Field("rack", STRING, "1+", nullable=True, default=None),
    ),
    Field("cluster_id", STRING, "2+", nullable=True, default=None),
    Field("controller_id", INT32, "1+", default=-1, entity=BROKER_ID),
    Field("topics", Array("MetadataResponseTopic")).of(
        Field("error_code", INT16),
        Field("name", STRING, nullable="12+", entity=TOPIC_NAME),
        Field("topic_id", UUID, "10+", own_entity=TOPIC_ID),
        Field("is_internal", BOOL, "1+"),
        Field("partitions", Array("MetadataResponsePartition")).of(
            Field("error_code", INT16),
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("leader_id", INT32, entity=BROKER_ID),
            Field("leader_epoch", INT32, "7+", default=-1),
            Field("replica_nodes", Array(INT32), entity=BROKER_ID),
            Field("isr_nodes", Array(INT32), entity=BROKER_ID),
            Field("offline_replicas", Array(INT32), "5+", entity=BROKER_ID),
        ),
        Field("topic_authorized_operations", INT32, "8+", default=-2147483648),
    ),
    Field("cluster_authorized_operations", INT32, "8-10", default=-2147483648),
    Field("error_code", INT16, "13+"),
)
