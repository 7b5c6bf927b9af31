"""ReadShareGroupStateSummary (key 87)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ReadShareGroupStateSummaryRequest", "0-1", flexible="0+").of(
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field("topics", Array("ReadStateSummaryData")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("leader_epoch", INT32),
        ),
    ),
)

RESPONSE = Message("ReadShareGroupStateSummaryResponse", "0-1", flexible="0+").of(
    Field("results", Array("ReadStateSummaryResult")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionResult")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
            Field("state_epoch", INT32),
            Field("leader_epoch", INT32),
            Field("start_offset", INT64),
            Field("delivery_complete_count", INT32, "1+", default=-1),
        ),
    ),
)
