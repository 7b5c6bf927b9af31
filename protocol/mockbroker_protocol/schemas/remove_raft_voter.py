"""RemoveRaftVoter (key 81)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, UUID, Field, Message

REQUEST = Message(
    "RemoveRaftVoterRequest",
    Field("cluster_id", STRING, nullable=True),
    Field("voter_id", INT32),
    Field("voter_directory_id", UUID),
    versions="0",
    flexible="0+",
)

RESPONSE = Message(
    "RemoveRaftVoterResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True),
    versions="0",
    flexible="0+",
)
