"""DeleteShareGroupOffsets (key 92)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DeleteShareGroupOffsetsRequest", "0", flexible="0+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("topics", Array("DeleteShareGroupOffsetsRequestTopic")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
    ),
)

RESPONSE = Message("DeleteShareGroupOffsetsResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("responses", Array("DeleteShareGroupOffsetsResponseTopic")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True, default=None),
    ),
)
