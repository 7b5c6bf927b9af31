"""Fetch (key 1)."""

from mockbroker_protocol.declare import *

REQUEST = Message("FetchRequest", "4-18", flexible="12+").of(
    Field("cluster_id", STRING, "12+", nullable=True, tag=0, default=None),
    Field("replica_id", INT32, "4-14", default=-1, entity=BROKER_ID),
    Field("replica_state", Shape("ReplicaState"), "15+", tag=1).of(
        Field("replica_id", INT32, default=-1, entity=BROKER_ID),
        Field("replica_epoch", INT64, default=-1),
    ),
    Field("max_wait_ms", INT32),
    Field("min_bytes", INT32),
    Field("max_bytes", INT32, default=2147483647),
    Field("isolation_level", INT8),
    Field("session_id", INT32, "7+"),
    Field("session_epoch", INT32, "7+", default=-1),
    Field("topics", Array("FetchTopic")).of(
        Field("topic", STRING, "4-12", entity=TOPIC_NAME),
        Field("topic_id", UUID, "13+", own_entity=TOPIC_ID),
        Field("partitions", Array("FetchPartition")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("current_leader_epoch", INT32, "9+", default=-1),
            Field("fetch_offset", INT64),
            Field("last_fetched_epoch", INT32, "12+", default=-1),
            Field("log_start_offset", INT64, "5+", default=-1),
            Field("partition_max_bytes", INT32),
            Field("replica_directory_id", UUID, "17+", tag=0),
            Field("high_watermark", INT64, "18+", tag=1, default=9223372036854775807),
        ),
    ),
    Field("forgotten_topics_data", Array("ForgottenTopic"), "7+").of(
        Field("topic", STRING, "7-12", entity=TOPIC_NAME),
        Field("topic_id", UUID, "13+", own_entity=TOPIC_ID),
        Field("partitions", Array(INT32), own_entity=PARTITION),
    ),
    Field("rack_id", STRING, "11+"),
)

RESPONSE = Message("FetchResponse", "4-18", flexible="12+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "7+"),
    Field("session_id", INT32, "7+"),
    Field("responses", Array("FetchableTopicResponse")).of(
        Field("topic", STRING, "4-12", entity=TOPIC_NAME),
        Field("topic_id", UUID, "13+", own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("high_watermark", INT64),
            Field("last_stable_offset", INT64, default=-1),
            Field("log_start_offset", INT64, "5+", default=-1),
            Field("diverging_epoch", Shape("EpochEndOffset"), "12+", tag=0).of(
                Field("epoch", INT32, default=-1),
                Field("end_offset", INT64, default=-1),
            ),
            Field("current_leader", Shape("LeaderIdAndEpoch"), "12+", tag=1).of(
                Field("leader_id", INT32, default=-1, entity=BROKER_ID),
                Field("leader_epoch", INT32, default=-1),
            ),
            Field("snapshot_id", Shape("SnapshotId"), "12+", tag=2).of(
                Field("end_offset", INT64, default=-1),
                Field("epoch", INT32, default=-1),
            ),
            Field("aborted_transactions", Array("AbortedTransaction"), nullable=True).of(
                Field("producer_id", INT64, entity=PRODUCER_ID),
                Field("first_offset", INT64),
            ),
            Field("preferred_read_replica", INT32, "11+", default=-1, entity=BROKER_ID),
            Field("records", RECORDS, nullable=True),
        ),
    ),
    Field("node_endpoints", Array("NodeEndpoint"), "16+", tag=0).of(
        Field("node_id", INT32, entity=BROKER_ID),
        Field("host", STRING),
        Field("port", INT32),
        Field("rack", STRING, nullable=True, default=None),
    ),
)
