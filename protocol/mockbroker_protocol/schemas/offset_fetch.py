"""OffsetFetch (key 9)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
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
    "OffsetFetchRequest",
    Field("group_id", STRING, "1-7"),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetFetchRequestTopic",
                Field("name", STRING),
                Field("partition_indexes", Array(INT32)),
            )
        ),
        "1-7",
        nullable="2-7",
    ),
    Field(
        "groups",
        Array(
            Shape(
                "OffsetFetchRequestGroup",
                Field("group_id", STRING),
                Field("member_id", STRING, "9+", nullable=True, default=None),
                Field("member_epoch", INT32, "9+", default=-1),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "OffsetFetchRequestTopics",
                            Field("name", STRING, "8-9"),
                            Field("topic_id", UUID, "10+"),
                            Field("partition_indexes", Array(INT32)),
                        )
                    ),
                    nullable=True,
                ),
            )
        ),
        "8+",
    ),
    Field("require_stable", BOOL, "7+"),
    versions="1-10",
    flexible="6+",
)

RESPONSE = Message(
    "OffsetFetchResponse",
    Field("throttle_time_ms", INT32, "3+"),
    Field(
        "topics",
        Array(
            Shape(
                "OffsetFetchResponseTopic",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "OffsetFetchResponsePartition",
                            Field("partition_index", INT32),
                            Field("committed_offset", INT64),
                            Field("committed_leader_epoch", INT32, "5-7", default=-1),
                            Field("metadata", STRING, nullable=True),
                            Field("error_code", INT16),
                        )
                    ),
                ),
            )
        ),
        "1-7",
    ),
    Field("error_code", INT16, "2-7"),
    Field(
        "groups",
        Array(
            Shape(
                "OffsetFetchResponseGroup",
                Field("group_id", STRING),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "OffsetFetchResponseTopics",
                            Field("name", STRING, "8-9"),
                            Field("topic_id", UUID, "10+"),
                            Field(
                                "partitions",
                                Array(
                                    Shape(
                                        "OffsetFetchResponsePartitions",
                                        Field("partition_index", INT32),
                                        Field("committed_offset", INT64),
                                        Field("committed_leader_epoch", INT32, default=-1),
                                        Field("metadata", STRING, nullable=True),
                                        Field("error_code", INT16),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
                Field("error_code", INT16),
            )
        ),
        "8+",
    ),
    versions="1-10",
    flexible="6+",
)
