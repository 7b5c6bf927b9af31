"""AlterShareGroupOffsets (key 91)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterShareGroupOffsetsRequest", "0", flexible="0+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("topics", Array("AlterShareGroupOffsetsRequestTopic")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("AlterShareGroupOffsetsRequestPartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("start_offset", INT64),
        ),
    ),
)

RESPONSE = Message("AlterShareGroupOffsetsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("responses", Array("AlterShareGroupOffsetsResponseTopic")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("AlterShareGroupOffsetsResponsePartition")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
        ),
    ),
)
