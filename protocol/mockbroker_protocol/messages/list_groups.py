"""ListGroups (key 16), versions 0-5.

Generated from `schemas/list_groups.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ListGroupsRequest(Struct, gc=False):
    states_filter: list[str] = []
    types_filter: list[str] = []
    unknown_tags: UnknownTags = None


class ListedGroup(Struct, gc=False):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""
    unknown_tags: UnknownTags = None


class ListGroupsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = []
    unknown_tags: UnknownTags = None
