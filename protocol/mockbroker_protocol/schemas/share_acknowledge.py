"""ShareAcknowledge (key 79)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "ShareAcknowledgeRequest",
    Field("group_id", STRING, nullable=True, default=None),
    Field("member_id", STRING, nullable=True),
    Field("share_session_epoch", INT32),
    Field("is_renew_ack", BOOL, "2+"),
    Field(
        "topics",
        Array(
            Shape(
                "AcknowledgeTopic",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "AcknowledgePartition",
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
    versions="1-2",
    flexible="1+",
)

RESPONSE = Message(
    "ShareAcknowledgeResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("acquisition_lock_timeout_ms", INT32, "2+"),
    Field(
        "responses",
        Array(
            Shape(
                "ShareAcknowledgeTopicResponse",
                Field("topic_id", UUID),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionData",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True, default=None),
                            Field(
                                "current_leader",
                                Shape(
                                    "LeaderIdAndEpoch",
                                    Field("leader_id", INT32),
                                    Field("leader_epoch", INT32),
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
