"""Heartbeat (key 12), versions 0-4.

Generated from `schemas/heartbeat.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class HeartbeatRequest(Struct, gc=False):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    unknown_tags: UnknownTags = None


class HeartbeatResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None
