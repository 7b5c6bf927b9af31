"""AddRaftVoter (key 80), versions 0-1.

Generated from `schemas/add_raft_voter.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: UnknownTags = None


class AddRaftVoterRequest(Struct, gc=False):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: bool = True
    unknown_tags: UnknownTags = None


class AddRaftVoterResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None
