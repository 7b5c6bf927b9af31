"""OffsetDelete (key 47)."""

from mockbroker_protocol.declare import *

REQUEST = Message("OffsetDeleteRequest", "0", flexible="none").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("topics", Array("OffsetDeleteRequestTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("OffsetDeleteRequestPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
        ),
    ),
)

RESPONSE = Message("OffsetDeleteResponse", "0", flexible="none").of(
    Field("error_code", INT16),
    Field("throttle_time_ms", INT32),
    Field("topics", Array("OffsetDeleteResponseTopic")).of(
        Field("name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("OffsetDeleteResponsePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
        ),
    ),
)
