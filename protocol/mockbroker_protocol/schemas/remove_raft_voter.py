"""RemoveRaftVoter (key 81)."""

from mockbroker_protocol.declare import *

REQUEST = Message("RemoveRaftVoterRequest", "0", flexible="0+").of(
    Field("cluster_id", STRING, nullable=True),
    Field("voter_id", INT32, own_entity=BROKER_ID),
    Field("voter_directory_id", UUID),
)

RESPONSE = Message("RemoveRaftVoterResponse", "0", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
)
