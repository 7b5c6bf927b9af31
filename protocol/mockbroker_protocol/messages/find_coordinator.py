"""FindCoordinator (key 10), versions 0-6.

Generated from `schemas/find_coordinator.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class FindCoordinatorRequest(Struct, gc=False):
    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = []
    unknown_tags: UnknownTags = None


class Coordinator(Struct, gc=False):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None


class FindCoordinatorResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[Coordinator] = []
    unknown_tags: UnknownTags = None
