"""WriteTxnMarkers (key 27)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "WriteTxnMarkersRequest",
    Field(
        "markers",
        Array(
            "WritableTxnMarker",
            Field("producer_id", INT64, entity=PRODUCER_ID),
            Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
            Field("transaction_result", BOOL),
            Field(
                "topics",
                Array(
                    "WritableTxnMarkerTopic",
                    Field("name", STRING, entity=TOPIC_NAME),
                    Field("partition_indexes", Array(INT32), own_entity=PARTITION),
                ),
            ),
            Field("coordinator_epoch", INT32),
            Field("transaction_version", INT8, "2+"),
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
            "WritableTxnMarkerResult",
            Field("producer_id", INT64, entity=PRODUCER_ID),
            Field(
                "topics",
                Array(
                    "WritableTxnMarkerTopicResult",
                    Field("name", STRING, entity=TOPIC_NAME),
                    Field(
                        "partitions",
                        Array(
                            "WritableTxnMarkerPartitionResult",
                            Field("partition_index", INT32, own_entity=PARTITION),
                            Field("error_code", INT16),
                        ),
                    ),
                ),
            ),
        ),
    ),
    versions="1-2",
    flexible="1+",
)
