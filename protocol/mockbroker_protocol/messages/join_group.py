"""JoinGroup (key 11), versions 0-9.

Generated from `schemas/join_group.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class JoinGroupRequestProtocol(Struct, gc=False):
    name: str = ""
    metadata: bytes = b""
    unknown_tags: UnknownTags = None


class JoinGroupRequest(Struct, gc=False):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: str | None = None
    unknown_tags: UnknownTags = None


class JoinGroupResponseMember(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""
    unknown_tags: UnknownTags = None


class JoinGroupResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
    unknown_tags: UnknownTags = None
