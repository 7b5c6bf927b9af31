"""SyncGroup (key 14), versions 0-5.

Generated from `schemas/sync_group.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class SyncGroupRequestAssignment(Struct, gc=False):
    member_id: str = ""
    assignment: bytes = b""
    unknown_tags: UnknownTags = None


class SyncGroupRequest(Struct, gc=False):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = []
    unknown_tags: UnknownTags = None


class SyncGroupResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    unknown_tags: UnknownTags = None
