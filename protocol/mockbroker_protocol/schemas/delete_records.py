"""DeleteRecords (key 21)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DeleteRecordsRequest", "0-2", flexible="2+").of(
    Field("topics", Array("DeleteRecordsTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("DeleteRecordsPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("offset", INT64),
        ),
    ),
    Field("timeout_ms", INT32),
)

RESPONSE = Message("DeleteRecordsResponse", "0-2", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("topics", Array("DeleteRecordsTopicResult")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("DeleteRecordsPartitionResult")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("low_watermark", INT64),
            Field("error_code", INT16),
        ),
    ),
)
