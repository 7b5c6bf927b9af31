"""DeleteShareGroupState (key 86)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DeleteShareGroupStateRequest", "0", flexible="0+").of(
    Field("group_id", STRING, own_entity=GROUP_ID),
    Field("topics", Array("DeleteStateData")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionData")).of(
            Field("partition", INT32, own_entity=PARTITION),
        ),
    ),
)

RESPONSE = Message("DeleteShareGroupStateResponse", "0", flexible="0+").of(
    Field("results", Array("DeleteStateResult")).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array("PartitionResult")).of(
            Field("partition", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True, default=None),
        ),
    ),
)
