"""DeleteTopics (key 20)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "DeleteTopicsRequest",
    Field(
        "topics",
        Array(
            "DeleteTopicState",
            Field("name", STRING, nullable=True, default=None, entity=TOPIC_NAME),
            Field("topic_id", UUID, own_entity=TOPIC_ID),
        ),
        "6+",
    ),
    Field("topic_names", Array(STRING), "1-5", entity=TOPIC_NAME),
    Field("timeout_ms", INT32),
    versions="1-6",
    flexible="4+",
)

RESPONSE = Message(
    "DeleteTopicsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "responses",
        Array(
            "DeletableTopicResult",
            Field("name", STRING, nullable="6+", entity=TOPIC_NAME),
            Field("topic_id", UUID, "6+", own_entity=TOPIC_ID),
            Field("error_code", INT16),
            Field("error_message", STRING, "5+", nullable=True, default=None),
        ),
    ),
    versions="1-6",
    flexible="4+",
)
