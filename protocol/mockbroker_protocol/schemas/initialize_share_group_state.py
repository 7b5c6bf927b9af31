"""InitializeShareGroupState (key 83)."""

from mockbroker_protocol.declare import *

REQUEST = Message("InitializeShareGroupStateRequest", "0", flexible="0+").of(
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field("topics", Array("InitializeStateData")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("state_epoch", INT32),
            Field("start_offset", INT64),
        ),
    ),
)

RESPONSE = Message("InitializeShareGroupStateResponse", "0", flexible="0+").of(
    Field("results", Array("InitializeStateResult")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionResult")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
        ),
    ),
)
