"""LeaveGroup (key 13), versions 0-5.

Generated from `schemas/leave_group.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class MemberIdentity(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None
    unknown_tags: UnknownTags = None


class LeaveGroupRequest(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = []
    unknown_tags: UnknownTags = None


class MemberResponse(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0
    unknown_tags: UnknownTags = None


class LeaveGroupResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = []
    unknown_tags: UnknownTags = None
