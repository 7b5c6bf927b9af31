"""FindCoordinator (key 10)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "FindCoordinatorRequest",
    Field("key", STRING, "0-3", own_entity=COORDINATOR),
    Field("key_type", INT8, "1+"),
    Field("coordinator_keys", Array(STRING), "4+", own_entity=COORDINATOR),
    versions="0-6",
    flexible="3+",
)

RESPONSE = Message(
    "FindCoordinatorResponse",
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16, "0-3"),
    Field("error_message", STRING, "1-3", nullable=True),
    Field("node_id", INT32, "0-3", entity=BROKER_ID),
    Field("host", STRING, "0-3"),
    Field("port", INT32, "0-3"),
    Field(
        "coordinators",
        Array(
            "Coordinator",
            Field("key", STRING, own_entity=COORDINATOR_KEY),
            Field("node_id", INT32, entity=BROKER_ID),
            Field("host", STRING),
            Field("port", INT32),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
        ),
        "4+",
    ),
    versions="0-6",
    flexible="3+",
)
