"""ShareFetch (key 78)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "ShareFetchRequest",
    Field("group_id", STRING, nullable=True, default=None),
    Field("member_id", STRING, nullable=True),
    Field("share_session_epoch", INT32),
    Field("max_wait_ms", INT32),
    Field("min_bytes", INT32),
    Field("max_bytes", INT32, default=2147483647),
    Field("max_records", INT32),
    Field("batch_size", INT32),
    Field("share_acquire_mode", INT8, "2+"),
    Field("is_renew_ack", BOOL, "2+"),
    Field(
        "topics",
        Array(
            Shape(
                "FetchTopic",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "FetchPartition",
                            Field("partition_index", INT32),
                            Field(
                                "acknowledgement_batches",
                                Array(
                                    Shape(
                                        "AcknowledgementBatch",
                                        Field("first_offset", INT64),
                                        Field("last_offset", INT64),
                                        Field("acknowledge_types", Array(INT8)),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
            )
        ),
    ),
    Field(
        "forgotten_topics_data",
        Array(
            Shape(
                "ForgottenTopic",
                Field("topic_id", UUID),
                Field("partitions", Array(INT32)),
            )
        ),
    ),
    versions="1-2",
    flexible="1+",
)

RESPONSE = Message(
    "ShareFetchResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("acquisition_lock_timeout_ms", INT32),
    Field(
        "responses",
        Array(
            Shape(
                "ShareFetchableTopicResponse",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True, default=None),
                            Field("acknowledge_error_code", INT16),
                            Field("acknowledge_error_message", STRING, nullable=True, default=None),
                            Field(
                                "current_leader",
                                Shape(
                                    "LeaderIdAndEpoch",
                                    Field("leader_id", INT32),
                                    Field("leader_epoch", INT32),
                                ),
                            ),
                            Field("records", RECORDS),
                            Field(
                                "acquired_records",
                                Array(
                                    Shape(
                                        "AcquiredRecords",
                                        Field("first_offset", INT64),
                                        Field("last_offset", INT64),
                                        Field("delivery_count", INT16),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
            )
        ),
    ),
    Field(
        "node_endpoints",
        Array(
            Shape(
                "NodeEndpoint",
                Field("node_id", INT32),
                Field("host", STRING),
                Field("port", INT32),
                Field("rack", STRING, nullable=True, default=None),
            )
        ),
    ),
    versions="1-2",
    flexible="1+",
)
