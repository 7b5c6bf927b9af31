"""DeleteGroups (key 42), versions 0-2.

Generated from `schemas/delete_groups.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DeleteGroupsRequest(Struct, gc=False):
    groups_names: list[str] = []
    unknown_tags: UnknownTags = None


class DeletableGroupResult(Struct, gc=False):
    group_id: str = ""
    error_code: int = 0
    unknown_tags: UnknownTags = None


class DeleteGroupsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = []
    unknown_tags: UnknownTags = None
