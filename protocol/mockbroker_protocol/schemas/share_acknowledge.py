"""ShareAcknowledge (key 79)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ShareAcknowledgeRequest", "1-2", flexible="1+").of(
    Field("group_id", STRING, nullable=True, default=None, entity=GROUP_ID),
    Field("member_id", STRING, nullable=True, own_entity=MEMBER_ID),
    Field("share_session_epoch", INT32),
    Field("is_renew_ack", BOOL, "2+"),
    Field("topics", Array("AcknowledgeTopic")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("AcknowledgePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("acknowledgement_batches", Array("AcknowledgementBatch")).of(
                Field("first_offset", INT64),
                Field("last_offset", INT64),
                Field("acknowledge_types", Array(INT8)),
            ),
        ),
    ),
)

RESPONSE = Message("ShareAcknowledgeResponse", "1-2", flexible="1+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("acquisition_lock_timeout_ms", INT32, "2+"),
    Field("responses", Array("ShareAcknowledgeTopicResponse")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
            Field("current_leader", Shape("LeaderIdAndEpoch")).of(
                Field("leader_id", INT32, own_entity=BROKER_ID),
                Field("leader_epoch", INT32),
            ),
        ),
    ),
    Field("node_endpoints", Array("NodeEndpoint")).of(
        Field("node_id", INT32, entity=BROKER_ID),
        Field("host", STRING),
        Field("port", INT32),
        Field("rack", STRING, nullable=True, default=None),
    ),
)
