"""RemoveRaftVoter (key 81), versions 0.

Generated from `schemas/remove_raft_voter.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class RemoveRaftVoterRequest(Struct, gc=False):
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: bytes = ZERO_UUID
    unknown_tags: UnknownTags = None


class RemoveRaftVoterResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None
