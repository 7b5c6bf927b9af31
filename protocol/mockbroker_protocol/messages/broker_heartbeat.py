"""BrokerHeartbeat (key 63), versions 0-2.

Generated from `schemas/broker_heartbeat.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class BrokerHeartbeatRequest(Struct, gc=False):
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[bytes] = []
    cordoned_log_dirs: list[bytes] | None = None
    unknown_tags: UnknownTags = None


class BrokerHeartbeatResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
    unknown_tags: UnknownTags = None
