"""WriteTxnMarkers (key 27)."""

from __future__ import annotations

from mockbroker_protocol.declare import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Array,
    Field,
    Message,
    Shape,
)

REQUEST = Message(
    "WriteTxnMarkersRequest",
    Field(
        "markers",
        Array(
            Shape(
                "WritableTxnMarker",
                Field("producer_id", INT64),
                Field("producer_epoch", INT16),
                Field("transaction_result", BOOL),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "WritableTxnMarkerTopic",
                            Field("name", STRING),
                            Field("partition_indexes", Array(INT32)),
                        )
                    ),
                ),
                Field("coordinator_epoch", INT32),
                Field("transaction_version", INT8, "2+"),
            )
        ),
    ),
    versions="1-2",
    flexible="1+",
)

RESPONSE = Message(
    "WriteTxnMarkersResponse",
    Field(
        "markers",
        Array(
            Shape(
                "WritableTxnMarkerResult",
                Field("producer_id", INT64),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "WritableTxnMarkerTopicResult",
                            Field("name", STRING),
                            Field(
                                "partitions",
                                Array(
                                    Shape(
                                        "WritableTxnMarkerPartitionResult",
                                        Field("partition_index", INT32),
                                        Field("error_code", INT16),
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
