"""DeleteTopics (key 20)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DeleteTopicsRequest", "1-6", flexible="4+").of(
    Field("topics", Array("DeleteTopicState"), "6+").of(
        Field("name", STRING, nullable=True, default=None, entity=TOPIC_NAME),
        Field("topic_id", UUID, own_entity=TOPIC_ID),
    ),
    Field("topic_names", Array(STRING), "1-5", entity=TOPIC_NAME),
    Field("timeout_ms", INT32),
)

RESPONSE = Message("DeleteTopicsResponse", "1-6", flexible="4+").of(
    Field("throttle_time_ms", INT32),
    Field("responses", Array("DeletableTopicResult")).of(
        Field("name", STRING, nullable="6+", entity=TOPIC_NAME),
        Field("topic_id", UUID, "6+", own_entity=TOPIC_ID),
        Field("error_code", INT16),
        Field("error_message", STRING, "5+", nullable=True, default=None),
    ),
)
