"""FindCoordinator (key 10)."""

from mockbroker_protocol.declare import *

REQUEST = Message("FindCoordinatorRequest", "0-6", flexible="3+").of(
    Field("key", STRING, "0-3", own_entity=COORDINATOR),
    Field("key_type", INT8, "1+"),
    Field("coordinator_keys", Array(STRING), "4+", own_entity=COORDINATOR),
)

RESPONSE = Message("FindCoordinatorResponse", "0-6", flexible="3+").of(
    Field("throttle_time_ms", INT32, "1+"),
    Field("error_code", INT16, "0-3"),
    Field("error_message", STRING, "1-3", nullable=True),
    Field("node_id", INT32, "0-3", entity=BROKER_ID),
    Field("host", STRING, "0-3"),
    Field("port", INT32, "0-3"),
    Field("coordinators", Array("Coordinator"), "4+").of(
        Field("key", STRING, own_entity=COORDINATOR_KEY),
        Field("node_id", INT32, entity=BROKER_ID),
        Field("host", STRING),
        Field("port", INT32),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    ),
)
