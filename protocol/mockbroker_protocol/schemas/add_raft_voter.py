"""AddRaftVoter (key 80)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AddRaftVoterRequest", "0-1", flexible="0+").of(
    Field("cluster_id", STRING, nullable=True),
    Field("timeout_ms", INT32),
    Field("voter_id", INT32, own_entity=BROKER_ID),
    Field("voter_directory_id", UUID),
    Field("listeners", Array("Listener")).of(
        Field("name", STRING),
        Field("host", STRING),
        Field("port", UINT16),
    ),
    Field("ack_when_committed", BOOL, "1+", default=True),
)

RESPONSE = Message("AddRaftVoterResponse", "0-1", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
)
