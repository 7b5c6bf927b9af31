"""WriteShareGroupState (key 85)."""

from mockbroker_protocol.declare import *

REQUEST = Message("WriteShareGroupStateRequest", "0-1", flexible="0+").of(
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field("topics", Array("WriteStateData")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("state_epoch", INT32),
            Field("leader_epoch", INT32),
            Field("start_offset", INT64),
            Field("delivery_complete_count", INT32, "1+", default=-1),
            Field("state_batches", Array("StateBatch")).of(
                Field("first_offset", INT64),
                Field("last_offset", INT64),
                Field("delivery_state", INT8),
                Field("delivery_count", INT16),
            ),
        ),
    ),
)

RESPONSE = Message("WriteShareGroupStateResponse", "0-1", flexible="0+").of(
    Field("results", Array("WriteStateResult")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionResult")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
        ),
    ),
)
