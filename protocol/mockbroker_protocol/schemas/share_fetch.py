"""ShareFetch (key 78)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ShareFetchRequest", "1-2", flexible="1+").of(
    Field("group_id", STRING, nullable=True, default=None, entity=GROUP_ID),
    Field("member_id", STRING, nullable=True, own_entity=MEMBER_ID),
    Field("share_session_epoch", INT32),
    Field("max_wait_ms", INT32),
    Field("min_bytes", INT32),
    Field("max_bytes", INT32, default=2147483647),
    Field("max_records", INT32),
    Field("batch_size", INT32),
    Field("share_acquire_mode", INT8, "2+"),
    Field("is_renew_ack", BOOL, "2+"),
    Field("topics", Array("FetchTopic")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("FetchPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("acknowledgement_batches", Array("AcknowledgementBatch")).of(
                Field("first_offset", INT64),
                Field("last_offset", INT64),
                Field("acknowledge_types", Array(INT8)),
            ),
        ),
    ),
    Field("forgotten_topics_data", Array("ForgottenTopic")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array(INT32), own_entity=PARTITION),
    ),
)

RESPONSE = Message("ShareFetchResponse", "1-2", flexible="1+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("acquisition_lock_timeout_ms", INT32),
    Field("responses", Array("ShareFetchableTopicResponse")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
            Field("acknowledge_error_code", INT16),
            Field("acknowledge_error_message", STRING, nullable=True, default=None),
            Field("current_leader", Shape("LeaderIdAndEpoch")).of(
                Field("leader_id", INT32, own_entity=BROKER_ID),
                Field("leader_epoch", INT32),
            ),
            Field("records", RECORDS),
            Field("acquired_records", Array("AcquiredRecords")).of(
                Field("first_offset", INT64),
                Field("last_offset", INT64),
                Field("delivery_count", INT16),
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
