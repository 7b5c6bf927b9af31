"""WriteTxnMarkers (key 27)."""

from mockbroker_protocol.declare import *

REQUEST = Message("WriteTxnMarkersRequest", "1-2", flexible="1+").of(
    Field("markers", Array("WritableTxnMarker")).of(
        Field("producer_id", INT64, entity=PRODUCER_ID),
        Field("producer_epoch", INT16, own_entity=PRODUCER_EPOCH),
        Field("transaction_result", BOOL),
        Field("topics", Array("WritableTxnMarkerTopic")).of(
            Field("name", STRING, entity=TOPIC_NAME),
            Field("partition_indexes", Array(INT32), own_entity=PARTITION),
        ),
        Field("coordinator_epoch", INT32),
        Field("transaction_version", INT8, "2+"),
    ),
)

RESPONSE = Message("WriteTxnMarkersResponse", "1-2", flexible="1+").of(
    Field("markers", Array("WritableTxnMarkerResult")).of(
        Field("producer_id", INT64, entity=PRODUCER_ID),
        Field("topics", Array("WritableTxnMarkerTopicResult")).of(
            Field("name", STRING, entity=TOPIC_NAME),
            Field("partitions", Array("WritableTxnMarkerPartitionResult")).of(
                Field("partition_index", INT32, own_entity=PARTITION),
                Field("error_code", INT16),
            ),
        ),
    ),
)
