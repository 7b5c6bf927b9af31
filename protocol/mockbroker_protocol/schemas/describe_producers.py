"""DescribeProducers (key 61)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, INT64, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "DescribeProducersRequest",
    Field(
        "topics",
        Array(
            Shape(
                "TopicRequest",
                Field("name", STRING),
                Field("partition_indexes", Array(INT32)),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "DescribeProducersResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        Array(
            Shape(
                "TopicResponse",
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "PartitionResponse",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("error_message", STRING, nullable=True, default=None),
                            Field(
                                "active_producers",
                                Array(
                                    Shape(
                                        "ProducerState",
                                        Field("producer_id", INT64),
                                        Field("producer_epoch", INT32),
                                        Field("last_sequence", INT32, default=-1),
                                        Field("last_timestamp", INT64, default=-1),
                                        Field("coordinator_epoch", INT32),
                                        Field("current_txn_start_offset", INT64, default=-1),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="0",
    flexible="0+",
)
